from __future__ import annotations

from datetime import timedelta

import pytest

from portal.core.errors import ConflictError
from portal.core.models import Event
from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.members import member_add, member_remove, member_set_role
from portal.labs.services.tokens import token_create

pytestmark = pytest.mark.django_db


def membership_of(user: User) -> Membership:
    return Membership.objects.get(user=user)


def test_a_member_is_added_once(lab: Lab, manager: User, stranger: User) -> None:
    member_add(lab, user=stranger, role=Role.VIEWER, by=manager)
    with pytest.raises(ConflictError, match="member"):
        member_add(lab, user=stranger, role=Role.REVIEWER, by=manager)
    assert Membership.objects.get(lab=lab, user=stranger).role == Role.VIEWER


def test_the_last_manager_is_neither_removed_nor_demoted(lab: Lab, manager: User) -> None:
    with pytest.raises(ConflictError, match="last manager"):
        member_remove(membership_of(manager), by=manager)
    with pytest.raises(ConflictError, match="last manager"):
        member_set_role(membership_of(manager), role=Role.REVIEWER, by=manager)
    assert membership_of(manager).role == Role.MANAGER


def test_a_manager_may_leave_once_there_is_another(lab: Lab, manager: User, viewer: User) -> None:
    member_set_role(membership_of(viewer), role=Role.MANAGER, by=manager)
    member_remove(membership_of(manager), by=manager)
    assert list(Membership.objects.filter(lab=lab).values_list("user", flat=True)) == [viewer.pk]


def test_every_change_of_members_is_on_record(lab: Lab, manager: User, viewer: User) -> None:
    member_set_role(membership_of(viewer), role=Role.REVIEWER, by=manager)
    member_remove(membership_of(viewer), by=manager)
    events = Event.objects.filter(name__startswith="member.", lab_id=lab.id)
    assert [(e.name, e.payload["role"], e.payload["by"]) for e in events] == [
        ("member.role_changed", "reviewer", str(manager.id)),
        ("member.removed", "reviewer", str(manager.id)),
    ]


def test_tokens_of_a_former_member_stay_revoked_after_rejoining(
    lab: Lab, manager: User, viewer: User
) -> None:
    token, _ = token_create(
        viewer, name="LIS", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
    )
    member_remove(membership_of(viewer), by=manager)
    member_add(lab, user=viewer, role=Role.VIEWER, by=manager)
    token.refresh_from_db()
    assert token.revoked_at is not None
