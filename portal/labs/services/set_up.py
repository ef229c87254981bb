"""Writes: the first lab and its first manager."""

from __future__ import annotations

from django.db import transaction

from portal.core.errors import ConflictError, NotFoundError
from portal.labs.models import Lab, Purpose, Role, User
from portal.labs.services.accounts import user_create
from portal.labs.services.invitations import invitation_create
from portal.labs.services.labs import lab_create
from portal.labs.services.links import link_make, link_take


def first_run_open() -> str | None:
    """Secret that opens the set-up page, or None if any account exists.

    Each call creates a new secret; only the last one works.
    """
    return None if User.objects.exists() else link_make(Purpose.FIRST_RUN)


@transaction.atomic
def first_run_finish(
    secret: str, *, lab_name: str, email: str, full_name: str, password: str
) -> User:
    """Create the first lab and the account of its manager, who is the present user.

    Raises:
        NotFoundError: the token is wrong, used or expired.
        ConflictError: there is an account already.
        InvalidInputError: name, address or password are not acceptable.
    """
    if link_take(secret, purpose=Purpose.FIRST_RUN) is None:
        raise NotFoundError(
            "This token does not work. The current one is in the log of the server."
        )
    if User.objects.exists():
        raise ConflictError("This installation has already been set up.", code="set-up-already")
    user = user_create(email, password=password, full_name=full_name)
    lab_create(lab_name, manager=user)
    return user


@transaction.atomic
def lab_set_up(
    name: str, *, slug: str = "", email: str, full_name: str = "", password: str | None = None
) -> tuple[Lab, str | None]:
    """Create a lab and its first manager.

    Returns:
        The lab, and without a password the secret of the manager's invitation.
    Raises:
        InvalidInputError: name, address or password are not acceptable.
        ConflictError: the lab exists, or a password was given for an account that exists.
    """
    if password is None:
        lab = lab_create(name, slug=slug)
        _, secret = invitation_create(
            lab, email=email, role=Role.MANAGER, by=None, full_name=full_name
        )
        return lab, secret
    user = user_create(email, password=password, full_name=full_name)
    return lab_create(name, slug=slug, manager=user), None
