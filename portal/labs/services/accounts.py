"""Writes: accounts of people."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import Invitation, User
from portal.labs.services.attempts import devices_forget
from portal.labs.services.sessions import sessions_end_of
from portal.labs.services.tokens import tokens_revoke_of


def user_create(email: str, *, password: str | None = None, full_name: str = "") -> User:
    """Create an account. Without a password, a mailed link is the only way in.

    Raises:
        InvalidInputError: the address or the password is not acceptable.
        ConflictError: the address has an account.
    """
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidInputError(" ".join(error.messages)) from None
    if password is not None:
        password_check(password, User(email=email, full_name=full_name))
    conflict = ConflictError(f"{email} already has an account.", code="email-taken")
    if User.objects.filter(email=email).exists():
        raise conflict
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, full_name=full_name.strip())
    except IntegrityError:
        raise conflict from None


def invited_account_create(email: str) -> None:
    """Create an account without a password for an address with a live invitation; it joins no lab
    yet."""
    open_ones = Invitation.objects.open().filter(email=email, expires_at__gt=timezone.now())
    if invitation := open_ones.first():
        user_create(email, full_name=invitation.full_name)


def password_check(password: str, user: User) -> None:
    """Refuse a short or common password, or one similar to the user's name or address.

    Raises:
        InvalidInputError: with the reasons.
    """
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInputError(" ".join(error.messages)) from None


@transaction.atomic
def password_set(user: User, password: str) -> None:
    """Set a password chosen by the user. Emits ``account.password_set``.

    All API tokens and known browsers are revoked and all sessions end; a user who changes the
    password while signed in continues in a new session.
    """
    user.set_password(password)
    user.save(update_fields=["password"])
    tokens_revoke_of(user)
    devices_forget(user)
    sessions_end_of(user)
    _note("account.password_set", user)


@transaction.atomic
def user_deactivate(user: User) -> None:
    """Close an account; its work stays. Emits ``account.deactivated``.

    Sessions end and tokens are revoked, also if the account is reactivated later.
    """
    user.is_active = False
    user.save(update_fields=["is_active"])
    tokens_revoke_of(user)
    sessions_end_of(user)
    _note("account.deactivated", user)


@transaction.atomic
def factors_remove(user: User) -> int:
    """Remove all second factors and end all sessions. Emits ``account.factor_removed`` for each."""
    kinds = list(Authenticator.objects.filter(user_id=user.pk).values_list("type", flat=True))
    Authenticator.objects.filter(user_id=user.pk).delete()
    sessions_end_of(user)
    for kind in kinds:
        event_emit(
            "account.factor_removed", lab_id=None, payload={"user": str(user.pk), "kind": kind}
        )
    return len(kinds)


def _note(name: str, user: User) -> None:
    event_emit(name, lab_id=None, payload={"user": str(user.pk)})
