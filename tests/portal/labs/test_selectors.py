from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.core.errors import ForbiddenError, NotFoundError
from portal.labs import selectors
from portal.labs.models import ApiToken, Lab, Membership, Role, User
from portal.labs.rules import has_role, require_role, role_in
from portal.labs.services.accounts import user_create
from portal.labs.services.members import member_add

pytestmark = pytest.mark.django_db


def test_roles_include_those_before_them(lab: Lab, reviewer: User) -> None:
    assert [has_role(reviewer, lab.id, at_least=role) for role in Role] == [True, True, True, False]
    with pytest.raises(ForbiddenError, match="lab manager"):
        require_role(reviewer, lab.id, at_least=Role.MANAGER)


def test_a_stranger_has_no_role(lab: Lab, stranger: User) -> None:
    assert role_in(stranger, lab.id) is None
    assert not has_role(stranger, lab.id, at_least=Role.VIEWER)


def test_an_anonymous_user_sees_nothing(viewer: User) -> None:
    assert not Lab.objects.visible_to(AnonymousUser()).exists()
    assert not Membership.objects.visible_to(AnonymousUser()).exists()
    assert not ApiToken.objects.visible_to(AnonymousUser()).exists()


def test_an_inactive_user_sees_nothing(viewer: User) -> None:
    viewer.is_active = False
    assert not Lab.objects.visible_to(viewer).exists()
    assert not Membership.objects.visible_to(viewer).exists()


def test_a_person_without_lab_finds_none(db: None) -> None:
    with pytest.raises(NotFoundError, match="member"):
        selectors.lab_get(user_create("alone@lab.example"))


def test_members_come_managers_first(
    lab: Lab, viewer: User, annotator: User, reviewer: User, manager: User
) -> None:
    roles = [membership.role for membership in selectors.members_of(lab)]
    assert roles == [Role.MANAGER, Role.REVIEWER, Role.ANNOTATOR, Role.VIEWER]


def test_labs_with_role_are_those_where_it_suffices(
    lab: Lab, other_lab: Lab, manager: User
) -> None:
    member_add(other_lab, user=manager, role=Role.VIEWER)
    assert list(selectors.labs_with_role(manager, at_least=Role.VIEWER)) == [lab, other_lab]
    assert list(selectors.labs_with_role(manager, at_least=Role.ANNOTATOR)) == [lab]
