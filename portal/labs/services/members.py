"""Writes: members of a lab and their roles.

``by`` is the person who acts and must be a manager of the lab; ``None`` is the installation itself
(set-up commands, tests). Each write leaves an event: together they are the audit trail.
"""

from __future__ import annotations

from django.db import transaction

from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.rules import require_role
from portal.labs.services.accounts import user_create


@transaction.atomic
def member_add(lab: Lab, *, user: User, role: Role, by: User | None = None) -> Membership:
    """Make the person a member. Emits ``member.added``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: already a member.
    """
    _require_manager(lab, by)
    membership, created = Membership.objects.get_or_create(
        user=user, lab=lab, defaults={"role": role}
    )
    if not created:
        raise ConflictError(f"{user} is already a member of {lab}.", code="already-member")
    _note("member.added", membership, by)
    return membership


@transaction.atomic
def member_invite(
    lab: Lab, *, email: str, role: Role, by: User, full_name: str = "", password: str | None = None
) -> tuple[Membership, bool]:
    """Add whoever has this address, with a new account if there is none.

    Name and password are used for a new account only: nobody sets another person's password.

    Returns:
        The membership, and True if an account was made.
    """
    _require_manager(lab, by)
    user = User.objects.filter(email=email.strip().lower()).first()
    is_new = user is None
    if user is None:
        user = user_create(email, password=password, full_name=full_name)
    return member_add(lab, user=user, role=role, by=by), is_new


@transaction.atomic
def member_set_role(membership: Membership, *, role: Role, by: User | None = None) -> Membership:
    """Change what a member may do. Emits ``member.role_changed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: the lab would be left without a manager.
    """
    _require_manager(membership.lab, by)
    if role != Role.MANAGER:
        _keep_a_manager(membership)
    membership.role = role
    membership.save(update_fields=["role", "updated_at"])
    _note("member.role_changed", membership, by)
    return membership


@transaction.atomic
def member_remove(membership: Membership, *, by: User | None = None) -> None:
    """End a membership; the account stays. Emits ``member.removed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: it is the lab's last manager.
    """
    _require_manager(membership.lab, by)
    _keep_a_manager(membership)
    _note("member.removed", membership, by)
    membership.delete()


def _require_manager(lab: Lab, by: User | None) -> None:
    if by is not None:
        require_role(by, lab.id, at_least=Role.MANAGER)


def _keep_a_manager(membership: Membership) -> None:
    managers = Membership.objects.select_for_update().filter(
        lab_id=membership.lab_id, role=Role.MANAGER
    )
    if set(managers.values_list("pk", flat=True)) == {membership.pk}:
        raise ConflictError(
            "This is the lab's last manager. Make somebody else a manager first.",
            code="last-manager",
        )


def _note(name: str, membership: Membership, by: User | None) -> None:
    event_emit(
        name,
        lab_id=membership.lab_id,
        payload={
            "membership": str(membership.id),
            "user": str(membership.user_id),
            "role": str(membership.role),
            "by": str(by.id) if by else None,
        },
    )
