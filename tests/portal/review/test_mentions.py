"""Mentions of members in comments."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.models import Roi
from portal.labs.models import Lab, Membership, User
from portal.review.services.mentions import mentions_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(lab: Lab) -> dict[str, User]:
    """Members by name, one of whose names begins with another's."""
    users = {}
    for name in ("Anna Berg", "Anna Bergström", "Bo Östlund"):
        email = f"{len(users)}@north.example"
        users[name] = User.objects.create_user(email, "correct horse", full_name=name)
        Membership.objects.create(user=users[name], lab=lab, role="annotator")
    return users


@pytest.mark.parametrize(
    ("text", "named", "texts"),
    [
        ("@Anna Berg, please look", ["Anna Berg"], ["@Anna Berg"]),
        ("@Anna Bergström please", ["Anna Bergström"], ["@Anna Bergström"]),
        ("(@bo östlund)", ["Bo Östlund"], ["@bo östlund"]),
        ("to @0@north.example.", ["Anna Berg"], ["@0@north.example"]),
        ("@Anna Berg and @Anna Berg", ["Anna Berg"], ["@Anna Berg"]),
        ("@Anna Bergen was there", [], []),
        ("mail Anna Berg at x@Anna Berg", [], []),
        ("@nobody", [], []),
        ("nobody at all", [], []),
    ],
)
def test_members_are_found_by_full_name_or_address(
    lab: Lab, people: dict[str, User], text: str, named: list[str], texts: list[str]
) -> None:
    mentions = mentions_in(text, lab_id=lab.pk)
    assert mentions.user_ids == {people[name].pk for name in named}
    assert list(mentions.texts) == texts


def test_people_of_other_labs_are_not_found(
    lab: Lab, other_lab: Lab, people: dict[str, User], stranger: User
) -> None:
    assert mentions_in(f"@{stranger.email}", lab_id=lab.pk).user_ids == frozenset()
    assert mentions_in("@Anna Berg", lab_id=other_lab.pk).texts == ()


def test_a_text_without_a_mention_takes_no_query(lab: Lab, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        mentions_in("Tumour, I think", lab_id=lab.pk)


def test_the_thread_marks_the_mentions(
    roi: Roi, reviewer: User, people: dict[str, User], api_as: Any
) -> None:
    path = f"/api/v1/rois/{roi.pk}/thread/"
    sent = api_as(reviewer).post(path, {"text": "@Anna Berg or @nobody?"}, format="json")
    assert sent.json()["mentions"] == ["@Anna Berg"]
    assert api_as(reviewer).get(path).json()["results"][-1]["mentions"] == ["@Anna Berg"]
