"""Members and invitations over REST: the services of the pages, with their refusals."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.core.models import Event
from portal.labs.models import Invitation, User

pytestmark = pytest.mark.django_db
MEMBERS, INVITATIONS = "/api/v1/members/", "/api/v1/invitations/"


@pytest.fixture
def managing(api_as: Any, manager: User) -> APIClient:
    client: APIClient = api_as(manager)
    return client


def test_members_are_those_of_ones_labs(
    managing: APIClient, viewer: User, stranger: User, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(4):
        rows = managing.get(MEMBERS).json()["results"]
    assert {row["user"]["email"] for row in rows} == {
        "viewer@north.example",
        "manager@north.example",
    }
    other = stranger.memberships.get()
    assert managing.get(f"{MEMBERS}{other.pk}/").status_code == 404
    assert len(managing.get(f"{MEMBERS}?lab={other.lab_id}").json()["results"]) == 0


def test_a_role_is_changed_and_a_membership_ended(managing: APIClient, viewer: User) -> None:
    path = f"{MEMBERS}{viewer.memberships.get().pk}/"
    assert managing.patch(path, {"role": "reviewer"}).json()["role"] == "reviewer"
    assert managing.patch(path, {"role": "owner"}).status_code == 400
    assert managing.patch(path, {}).status_code == 400
    assert managing.delete(path).status_code == 204
    assert not viewer.memberships.exists()
    names = set(Event.objects.values_list("name", flat=True))
    assert {"member.role_changed", "member.removed"} <= names


def test_an_invitation_without_mail_answers_its_link_once(
    managing: APIClient, client: Client, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    answer = managing.post(INVITATIONS, {"email": "New@lab.example", "role": "viewer"})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    (row,) = managing.get(INVITATIONS).json()["results"]
    assert row["email"] == "new@lab.example" and "link" not in row
    again = managing.post(INVITATIONS, {"email": "new@lab.example"})
    assert (again.status_code, again.json()["code"]) == (409, "already-invited")
    renewed = managing.post(f"{INVITATIONS}{row['id']}/renew/").json()
    assert renewed["link"] is None or renewed["link"] != answer.json()["link"]
    assert managing.delete(f"{INVITATIONS}{row['id']}/").status_code == 204
    assert managing.delete(f"{INVITATIONS}{row['id']}/").status_code == 409
    assert Invitation.objects.get().ended_at is not None
