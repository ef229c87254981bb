from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.labs.models import Lab, Role, TokenScope, User
from portal.labs.services import tokens as services
from tests.clients import client_of

pytestmark = pytest.mark.django_db


def browser(user: User) -> Client:
    return client_of(user)


@pytest.mark.parametrize("role", ["viewer", "annotator", "reviewer", "manager"])
def test_members_are_seen_by_all_and_edited_by_managers(
    role: str, lab: Lab, request: pytest.FixtureRequest
) -> None:
    text = browser(request.getfixturevalue(role)).get("/lab/").content.decode()
    assert f"{role}@north.example" in text
    assert ("Invite somebody" in text) == (role == "manager")


def test_the_last_manager_cannot_be_removed_and_gets_the_reason(lab: Lab, manager: User) -> None:
    membership = manager.memberships.get()
    client = browser(manager)
    for action, data in (("remove", {}), ("role", {"role": "viewer"})):
        response = client.post(f"/lab/members/{membership.id}/{action}/", data, follow=True)
        assert "last manager" in response.content.decode()
    membership.refresh_from_db()
    assert membership.role == Role.MANAGER


def test_an_unknown_role_is_refused(lab: Lab, manager: User, viewer: User) -> None:
    membership = viewer.memberships.get()
    response = browser(manager).post(f"/lab/members/{membership.id}/role/", {"role": "emperor"})
    assert response.status_code == 400
    assert "The role must be one of viewer, annotator" in response.content.decode()


def test_pages_need_equal_queries_for_many_rows(
    lab: Lab, manager: User, viewer: User, reviewer: User, django_assert_max_num_queries: Any
) -> None:
    client = browser(manager)
    for _ in range(5):
        services.token_create(
            manager, name="x", scope=TokenScope.READ, expires_in=timedelta(days=1)
        )
    with django_assert_max_num_queries(9):
        client.get("/lab/")
    with django_assert_max_num_queries(7):
        client.get("/account/tokens/")
