"""Writes: members of a lab and their roles.

``by`` is the acting user and must be a manager of the lab; ``None`` is the installation itself
(set-up commands, tests). Each write emits an event for the audit log.
"""

from __future__ import annotations

from django.db import transaction

from portal.core.api.idempotency import responses_forget
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.rules import require_manager
from portal.labs.services.invitation_endings import invitations_revoke_of
from portal.labs.services.tokens import tokens_revoke_of


@transaction.atomic
def member_add(lab: Lab, *, user: User, role: Role, by: User | None = None) -> Membership:
    """Add a member. Emits ``member.added``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: already a member.
    """
    require_manager(by, lab)
    membership, created = Membership.objects.get_or_create(
        user=user, lab=lab, defaults={"role": role}
    )
    if not created:
        raise ConflictError(f"{user} is already a member of {lab}.", code="already-member")
    _note("member.added", membership, by)
    return membership


@transaction.atomic
def member_set_role(membership: Membership, *, role: Role, by: User | None = None) -> Membership:
    """Change a member's role. Emits ``member.role_changed``.

    Open invitations by a user who is no longer a manager are revoked. If the role is lowered,
    stored answers under the user's ``Idempotency-Key`` are no longer returned.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: the lab would be left without a manager.
    """
    require_manager(by, membership.lab)
    if membership.user.is_service:
        raise ConflictError(
            "The role of a service account cannot be changed.", code="service-account-role"
        )
    if role != Role.MANAGER:
        _keep_a_manager(membership)
        invitations_revoke_of(membership.user, lab=membership.lab)
    if role.rank < Role(membership.role).rank:
        responses_forget(membership.user_id)
    membership.role = role
    membership.save(update_fields=["role", "updated_at"])
    _note("member.role_changed", membership, by)
    return membership


@transaction.atomic
def member_remove(membership: Membership, *, by: User | None = None) -> None:
    """End a membership; the account stays. Emits ``member.removed``.

    The user's API tokens and open invitations end as well, and stay so if the user is invited
    again.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: it is the lab's last manager.

    """
    require_manager(by, membership.lab)
    _keep_a_manager(membership)
    membership_end(membership, by=by)


def membership_end(membership: Membership, *, by: User | None) -> None:
    """End a membership without a permission check. Emits ``member.removed``."""
    invitations_revoke_of(membership.user, lab=membership.lab)
    tokens_revoke_of(membership.user, lab=membership.lab)
    _note("member.removed", membership, by)
    membership.delete()


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
