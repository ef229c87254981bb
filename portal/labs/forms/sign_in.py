"""Forms of the sign-in pages that differ from allauth's."""

from __future__ import annotations

from typing import Any

from allauth.account import forms as accounts
from allauth.account.adapter import get_adapter
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.adapter import get_adapter as get_factor_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn import forms as passkeys
from allauth.mfa.webauthn.internal.auth import get_state
from django.forms import Field
from django.http import HttpRequest

from portal.core.mail import mail_later, mail_make
from portal.labs.models import User
from portal.labs.services.factors import app_code_spend, passkey_challenge_spend


class _Labels:
    """Name the fields as the other forms of the portal do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Field] = self.fields  # type: ignore[attr-defined]
        for field in fields.values():
            label = str(field.label).replace("Email", "E-mail address").replace("(again)", "again")
            field.label = label.capitalize()
            field.widget.attrs.pop("placeholder", None)  # repeats the label


class SignInForm(_Labels, accounts.LoginForm):
    """Sign in with address and password."""


class ChangePasswordForm(_Labels, accounts.ChangePasswordForm):
    """Replace the password."""


class SetPasswordForm(_Labels, accounts.SetPasswordForm):
    """Choose a first password."""


class ResetKeyForm(_Labels, accounts.ResetPasswordKeyForm):
    """Choose a password by a link that was sent."""


class ConfirmPasswordForm(_Labels, accounts.ReauthenticateForm):
    """Password that confirms the user's identity again."""


class ResetForm(_Labels, accounts.ResetPasswordForm):
    """Request a link to choose a new password.

    Known and unknown addresses get the same response after the same work: a message is made for
    both, and sent in the background only to addresses with an account. A slow or failing mail
    server shows in the log, not in the response.
    """

    def save(self, request: HttpRequest, **kwargs: Any) -> str:
        """Mail the link if there is an account for the address."""
        email: str = self.cleaned_data["email"]
        people = [user for user in self.users if not user.is_service]
        user = next(iter(people), None) or User(email=email)
        key = f"{user_pk_to_url_str(user)}-{accounts.default_token_generator.make_token(user)}"
        message = mail_make(
            "account/email/password_reset_key",
            to=user.email,
            context={
                "user": user,
                "password_reset_url": get_adapter(request).get_reset_password_from_key_url(key),
            },
        )
        if people:
            mail_later(message)
        return email


class _CodeUsedUp:
    """Accept each code of an authenticator app only once."""

    def clean_code(self) -> str:
        """Check the code and use it up."""
        code: str = super().clean_code()  # type: ignore[misc]
        authenticator: Authenticator = self.authenticator  # type: ignore[attr-defined]
        if authenticator.type == Authenticator.Type.TOTP and not app_code_spend(
            authenticator, code
        ):
            raise get_factor_adapter().validation_error("incorrect_code")
        return code


class FactorForm(_CodeUsedUp, AuthenticateForm):
    """The second factor at sign-in."""


class ConfirmForm(_CodeUsedUp, ReauthenticateForm):
    """Second factor that confirms the user's identity again."""


MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of the passkey parsers for missing or malformed parts."""


class _PasskeyAnswer:
    """Refuse malformed and replayed passkey responses as wrong."""

    def clean_credential(self) -> Authenticator:
        """Return the passkey that signed the response."""
        challenge = str((get_state() or {}).get("challenge"))
        try:
            authenticator: Authenticator = super().clean_credential()  # type: ignore[misc]
        except MALFORMED as error:
            raise get_factor_adapter().validation_error("incorrect_code") from error
        if not passkey_challenge_spend(authenticator, challenge):
            raise get_factor_adapter().validation_error("incorrect_code")
        return authenticator


class PasskeySignInForm(_PasskeyAnswer, passkeys.LoginWebAuthnForm):
    """Sign in with a passkey, without a password."""


class PasskeyFactorForm(_PasskeyAnswer, passkeys.AuthenticateWebAuthnForm):
    """The second factor at sign-in."""


class PasskeyConfirmForm(_PasskeyAnswer, passkeys.ReauthenticateWebAuthnForm):
    """Passkey that confirms the user's identity again."""


class PasskeyAddForm(passkeys.AddWebAuthnForm):
    def clean(self) -> dict[str, Any]:
        """Refuse a malformed response of a new passkey."""
        try:
            cleaned: dict[str, Any] = super().clean()
        except MALFORMED as error:
            raise get_factor_adapter().validation_error("incorrect_code") from error
        return cleaned
