"""Sign-in through an organization's OpenID Connect provider."""

from __future__ import annotations

from typing import Any, NoReturn

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.contrib import messages
from django.http import HttpRequest
from django.shortcuts import redirect

from portal.labs.models import User
from portal.labs.selectors import account_exists, person_to_sign_in
from portal.labs.services.accounts import invited_account_create
from portal.labs.services.proof import email_prove

FAILED = "The sign-in service did not answer as expected. Try again, or sign in another way."
UNPROVEN = "The sign-in service does not vouch for your e-mail address."
UNKNOWN = (
    "There is no account with your e-mail address. Ask the manager of your lab for an invitation."
)
OTHER = (
    "This account is linked to somebody else at the sign-in service. Ask the people who run "
    "Tessera."
)


class LabOidcAdapter(DefaultSocialAccountAdapter):
    """Admit people whose verified address has an account or an open invitation."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return whether the verified address has an open invitation."""
        return False

    def on_authentication_error(self, request: HttpRequest, provider: Any, **kwargs: Any) -> None:
        """Redirect to the sign-in page after a cancelled, expired or failed sign-in."""
        refuse(request, FAILED)

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Find the user by the verified address; the provider's user id must not change."""
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            refuse(request, FAILED)
        user = self._owner(request, sociallogin)
        linked = SocialAccount.objects.filter(
            user=user, provider=sociallogin.account.provider
        ).first()
        if sociallogin.is_existing:
            if sociallogin.user.pk != user.pk:
                refuse(request, OTHER)
        elif linked is not None:  # the directory gave the address to another person
            refuse(request, OTHER)
        else:
            sociallogin.connect(request, user)
        email_prove(user)

    def _owner(self, request: HttpRequest, sociallogin: SocialLogin) -> User:
        proven = [
            address.email for address in sociallogin.email_addresses if address.verified is True
        ]
        if not proven:
            refuse(request, UNPROVEN)
        email = proven[0].strip().lower()
        if not account_exists(email):
            invited_account_create(email)
        user = person_to_sign_in(email)
        if user is None:
            refuse(request, UNKNOWN)
        return user


def refuse(request: HttpRequest, reason: str) -> NoReturn:
    """Redirect to the sign-in page with the reason."""
    messages.error(request, reason)
    raise ImmediateHttpResponse(redirect("account_login"))
