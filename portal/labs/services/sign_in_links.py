"""Writes: sign-in and new passwords by one-time links."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from portal.core.errors import InvalidInputError
from portal.core.mail import mail_later, mail_make
from portal.labs.models import Purpose, User
from portal.labs.selectors import person_to_sign_in
from portal.labs.services.accounts import password_check, password_set
from portal.labs.services.links import LIFETIME, link_make, link_take
from portal.labs.services.proof import email_prove, unproven_access_end


def sign_in_link_mail(email: str, *, link_of: Callable[[str], str]) -> None:
    """Mail a sign-in link to an address that has an account.

    For other addresses the same work is done and nothing is sent.

    Args:
        link_of: Returns the URL of a secret.
    """
    email = email.strip().lower()
    user = person_to_sign_in(email)
    secret = link_make(Purpose.SIGN_IN, user=user, is_mailed=True)
    minutes = int(LIFETIME[Purpose.SIGN_IN].total_seconds() // 60)
    context = {"user": user or User(email=email), "link": link_of(secret), "minutes": minutes}
    message = mail_make("labs/mail/sign_in_link", to=email, context=context)
    if user is not None:
        mail_later(message)


@transaction.atomic
def link_use(secret: str, *, purpose: Purpose, password: str | None = None) -> User:
    """Use up a link and return its user; set their new password if one is given.

    Raises:
        InvalidInputError: the link was used, or the password is not acceptable; then the link still
            works.
    """
    link = link_take(secret, purpose=purpose)
    if link is None or link.user is None or not link.user.is_active:
        raise InvalidInputError("This link no longer works.", code="link-used")
    if link.is_mailed:
        email_prove(link.user)
    elif password is not None and link.user.email_proven_at is None:
        # No passkey or token made without proof of the address survives.
        unproven_access_end(link.user)
    if password is not None:
        password_check(password, link.user)
        password_set(link.user, password)
    return link.user
