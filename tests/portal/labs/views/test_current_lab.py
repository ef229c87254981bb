from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.archive.services.cases import case_create
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.services.members import member_add, member_remove

pytestmark = pytest.mark.django_db
CHOOSE = "/account/lab/"


@pytest.fixture
def both(lab: Lab, other_lab: Lab, annotator: User) -> User:
    """Annotator in one lab, manager in the other."""
    member_add(other_lab, user=annotator, role=Role.MANAGER)
    for where, accession in ((lab, "N-1"), (other_lab, "S-1")):
        case_create(lab=where, user=annotator, accession=accession)
    return annotator


def text_of(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def test_pages_follow_the_lab_that_was_chosen(both: User, page: Client) -> None:
    text = text_of(page, "/cases/")
    assert "N-1" in text and "S-1" in text and "All labs" in text
    page.post(CHOOSE, {"lab": "south"})
    text = text_of(page, "/cases/")
    assert "N-1" not in text and "S-1" in text and "Examinations of South" in text
    assert "<h1>South</h1>" in text_of(page, "/lab/")
    assert "Invite somebody" in text_of(page, "/lab/")  # manager here
    assert "<h1>South</h1>" in text_of(page, "/lab/labels/")
    page.post(CHOOSE, {"lab": "north"})
    assert "Invite somebody" not in text_of(page, "/lab/")  # and annotator there
    page.post(CHOOSE, {"lab": ""})
    assert "S-1" in text_of(page, "/cases/")


def test_an_address_that_names_a_lab_wins(both: User, page: Client) -> None:
    page.post(CHOOSE, {"lab": "south"})
    assert "<h1>North</h1>" in text_of(page, "/lab/?lab=north")


def test_another_lab_cannot_be_chosen(page: Client, other_lab: Lab) -> None:
    assert page.post(CHOOSE, {"lab": "south"}).status_code == 404
    assert page.get("/lab/").status_code == 200


def test_a_lab_that_one_has_left_is_chosen_no_longer(
    both: User, page: Client, stranger: User
) -> None:
    page.post(CHOOSE, {"lab": "south"})
    member_remove(Membership.objects.get(user=both, lab__slug="south"))
    assert "N-1" in text_of(page, "/cases/")
    assert "South" not in text_of(page, "/cases/")
    assert "<h1>North</h1>" in text_of(page, "/lab/")


def test_a_member_of_one_lab_gets_no_choice(page: Client, annotator: User) -> None:
    assert CHOOSE not in text_of(page, "/lab/")


@pytest.mark.parametrize("path", ["cases", "slides", "videos"])
def test_rest_lists_one_lab_where_it_is_named(both: User, api: Any, path: str) -> None:
    for slug, seen in (("north", ["N-1"]), ("south", ["S-1"])):
        lab = Lab.objects.get(slug=slug)
        rows = api.get(f"/api/v1/{path}/?lab={lab.pk}").json()["results"]
        assert [row["accession"] for row in rows] == (seen if path == "cases" else [])
    assert api.get(f"/api/v1/{path}/?lab=nonsense").status_code == 400


def test_rest_lists_nothing_of_a_lab_without_membership(
    both: User, api_as: Any, viewer: User
) -> None:
    south = Lab.objects.get(slug="south")
    assert api_as(viewer).get(f"/api/v1/cases/?lab={south.pk}").json()["results"] == []
