"""Pages of django-allauth that Tessera offers.

Users cannot change their own address: they could take one that another lab's manager is about to
invite.
"""

from __future__ import annotations

from allauth.account import views
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from django.urls import path, re_path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django.views.generic import RedirectView

from portal.core.mail import mail_works
from portal.labs.views.oidc import oidc_begin, oidc_return
from portal.labs.views.sign_in import SignInView

_MAIL = {"mail_works": mail_works}  # the pages say that no link can be sent
_RESET = views.PasswordResetView.as_view(extra_context=_MAIL)
_RESET_DONE = views.PasswordResetDoneView.as_view(extra_context=_MAIL)
_TO_FACTORS = RedirectView.as_view(pattern_name="mfa_index", http_method_names=["get", "head"])
urlpatterns = [
    path("login/", SignInView.as_view(), name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", views.signup, name="account_signup"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("password/reset/", _RESET, name="account_reset_password"),
    path("password/reset/done/", _RESET_DONE, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("factors/", factors.index, name="mfa_index"),
    path("factors/authenticate/", factors.authenticate, name="mfa_authenticate"),
    path("factors/reauthenticate/", factors.reauthenticate, name="mfa_reauthenticate"),
    path("factors/totp/add/", totp.activate_totp, name="mfa_activate_totp"),
    path("factors/totp/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("factors/codes/", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("factors/codes/new/", codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("factors/passkeys/", _TO_FACTORS, name="mfa_list_webauthn"),  # the page lists them all
    path("factors/passkeys/add/", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path(
        "factors/passkeys/reauthenticate/",
        passkeys.reauthenticate_webauthn,
        name="mfa_reauthenticate_webauthn",
    ),
    path("factors/passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("oidc/<slug:provider_id>/", oidc_begin, name="openid_connect_login"),
    path("oidc/<slug:provider_id>/callback/", oidc_return, name="openid_connect_callback"),
    path("passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
]
for _pattern in urlpatterns:  # allauth's views would answer PUT and DELETE as well
    _pattern.callback = never_cache(
        require_http_methods(["GET", "HEAD", "POST"])(_pattern.callback)
    )
