"""Writes: accounts of people."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import User


def user_create(email: str, *, password: str | None = None, full_name: str = "") -> User:
    """Create an account. Without a password it can only be entered through a reset link.

    Raises:
        InvalidInputError: the address or the password is not acceptable.
        ConflictError: the address has an account.
    """
    email = email.strip().lower()
    try:
        validate_email(email)
        if password is not None:
            validate_password(password, User(email=email, full_name=full_name))
    except ValidationError as error:
        raise InvalidInputError(" ".join(error.messages)) from None
    taken = ConflictError(f"{email} already has an account.", code="email-taken")
    if User.objects.filter(email=email).exists():
        raise taken
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, full_name=full_name.strip())
    except IntegrityError:
        raise taken from None
