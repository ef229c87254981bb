"""Permissions by role in a lab."""

from __future__ import annotations

import uuid

from portal.core.errors import ForbiddenError, NotFoundError
from portal.labs.models import Lab, Membership, Role, User


def role_in(user: User, lab_id: uuid.UUID) -> Role | None:
    """Role of the user in the lab, or None."""
    role = Membership.objects.of(user).filter(lab_id=lab_id).values_list("role", flat=True).first()
    return Role(role) if role else None


def has_role(user: User, lab_id: uuid.UUID, *, at_least: Role) -> bool:
    """Return whether the user's role in the lab includes ``at_least``."""
    role = role_in(user, lab_id)
    return role is not None and role.rank >= at_least.rank


def require_role(user: User, lab_id: uuid.UUID, *, at_least: Role) -> None:
    """Raise ``ForbiddenError`` unless the role suffices.

    Call after the object was found visible.
    """
    if not has_role(user, lab_id, at_least=at_least):
        raise ForbiddenError(f"You need the role of {at_least.label.lower()} in the lab.")


def require_role_anywhere(user: User, *, at_least: Role) -> None:
    """Refuse users without the role in any lab, before expensive work begins.

    Raises:
        NotFoundError: the user is a member of no lab, so nothing is visible to them.
        ForbiddenError: the role is too low in all labs.
    """
    roles = [Role(role) for role in Membership.objects.of(user).values_list("role", flat=True)]
    if not roles:
        raise NotFoundError("You are a member of no lab.")
    if all(role.rank < at_least.rank for role in roles):
        raise ForbiddenError(f"You need the role of {at_least.label.lower()} in a lab.")


def require_manager(by: User | None, lab: Lab) -> None:
    """Raise ``ForbiddenError`` unless ``by`` manages the lab; None is the installation itself."""
    if by is not None:
        require_role(by, lab.id, at_least=Role.MANAGER)
