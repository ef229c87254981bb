"""Sharing a case: who offers, who accepts, how it ends."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.archive.models import Case, CaseShare
from portal.archive.models.shares import today
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.sharing import share_seen, shares_received
from portal.archive.services.cases import case_delete
from portal.archive.services.sharing import share_accept, share_end, share_offer
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    TooManyRequestsError,
)
from portal.labs.models import Attempt, Lab, Membership, Role, User
from portal.labs.services.attempts import LAB_NAMES, LAB_NAMES_OF_LAB

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(other_lab: Lab) -> User:
    """A viewer of the other lab."""
    user = User.objects.create_user("reader@south.example", "correct horse battery")
    Membership.objects.create(user=user, lab=other_lab, role=Role.VIEWER)
    return user


def offered(case: Case, manager: User, *, days: int = 9, name: str = "south") -> CaseShare:
    until = today() + timedelta(days=days)
    return share_offer(case=case, with_lab=name, until=until, user=manager)


def test_a_case_is_read_from_its_acceptance_to_its_end(
    case: Case, manager: User, stranger: User, reader: User, other_lab: Lab
) -> None:
    share = offered(case, manager)
    with pytest.raises(NotFoundError):
        case_get(user=reader, case_id=case.pk)
    assert not shares_received(reader, lab=other_lab)
    assert list(shares_received(stranger, lab=other_lab)) == [share]
    share_accept(share=share, user=stranger)
    visible = case_get(user=reader, case_id=case.pk)
    assert share_seen(reader, visible) == share and share_seen(manager, visible) is None
    share_end(share=share, user=manager)
    with pytest.raises(NotFoundError):
        case_get(user=reader, case_id=case.pk)


def test_a_share_ends_by_itself_after_its_last_day(
    case: Case, manager: User, stranger: User, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = share_accept(share=offered(case, manager, days=2), user=stranger)
    midnight = datetime.combine(share.until, time(), UTC) + timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: midnight - timedelta(seconds=9))
    assert case_get(user=reader, case_id=case.pk) == case
    monkeypatch.setattr(timezone, "now", lambda: midnight + timedelta(seconds=1))
    with pytest.raises(NotFoundError):
        case_get(user=reader, case_id=case.pk)
    assert share.state == "over"
    with pytest.raises(ConflictError):
        share_accept(share=share, user=stranger)
    assert offered(case, manager).state == "offered"  # it can be offered again


def test_only_managers_offer_accept_and_end(
    case: Case, manager: User, annotator: User, stranger: User, reader: User
) -> None:
    with pytest.raises(ForbiddenError):
        offered(case, annotator)
    share = offered(case, manager)
    for user in (manager, reader):
        with pytest.raises(ForbiddenError):
            share_accept(share=share, user=user)
    for user in (annotator, reader):
        with pytest.raises(ForbiddenError):
            share_end(share=share, user=user)
    assert share_end(share=share, user=stranger).state == "ended"
    with pytest.raises(ConflictError):
        share_accept(share=share, user=stranger)


def test_a_lab_is_named_exactly_and_for_a_year_at_most(
    case: Case, manager: User, other_lab: Lab
) -> None:
    for name in ("sou", "SOUTH", "%", "", "north", "North"):
        with pytest.raises(InvalidInputError):
            offered(case, manager, name=name)
    for days in (-1, 367):
        with pytest.raises(InvalidInputError, match="until"):
            offered(case, manager, days=days)
    Lab.objects.create(name="South", slug="south-2")
    with pytest.raises(InvalidInputError, match="several"):
        offered(case, manager, name="South")
    assert offered(case, manager, days=366, name="south").with_lab == other_lab
    with pytest.raises(ConflictError, match="already"):
        offered(case, manager)


def test_a_case_in_the_trash_is_not_shared(
    case: Case, manager: User, stranger: User, reader: User
) -> None:
    share_accept(share=offered(case, manager), user=stranger)
    case_delete(case=case, user=manager)
    with pytest.raises(NotFoundError):
        case_get(user=reader, case_id=case.pk)
    assert not CaseShare.objects.visible_to(reader).exists()
    with pytest.raises(NotFoundError):
        offered(case, manager, name="south")


def test_a_member_of_both_labs_reads_it_as_owner(
    case: Case, lab: Lab, manager: User, stranger: User
) -> None:
    share_accept(share=offered(case, manager), user=stranger)
    Membership.objects.create(user=stranger, lab=lab, role=Role.VIEWER)
    assert share_seen(stranger, case_get(user=stranger, case_id=case.pk)) is None


def test_the_pages_offer_and_accept_and_name_the_other_lab(
    client: Client, case: Case, manager: User, stranger: User, reader: User
) -> None:
    client.force_login(manager)
    path = f"/cases/{case.pk}/shares/"
    wrong = client.post(path, {"with_lab": "nobody", "until": str(today())})
    assert (wrong.status_code, "No lab has this name" in wrong.content.decode()) == (422, True)
    sent = {"with_lab": "South", "until": str(today() + timedelta(days=5))}
    assert client.post(path, sent).headers["Location"] == path
    assert "Offered to" in client.get(f"/cases/{case.pk}/").content.decode()
    share = CaseShare.objects.get()
    client.force_login(reader)
    assert case.accession not in client.get("/lab/shared/").content.decode()
    client.force_login(stranger)
    assert case.accession in client.get("/lab/shared/").content.decode()
    assert client.post(f"/shares/{share.pk}/accept/").status_code == 302
    client.force_login(reader)
    assert case.accession in client.get("/lab/shared/").content.decode()
    page = client.get(f"/cases/{case.pk}/").content.decode()
    assert "Shared by North until" in page and "Patient key" not in page and "Upload" not in page


def test_the_pages_are_few_queries_however_many_shares(
    client: Client, case: Case, manager: User, django_assert_max_num_queries: Any
) -> None:
    for n in range(6):
        Lab.objects.create(name=f"Lab {n}", slug=f"lab-{n}")
        offered(case, manager, name=f"lab-{n}")
    client.force_login(manager)
    for path, max_queries in ((f"/cases/{case.pk}/shares/", 12), ("/lab/shared/", 12)):
        client.get(path)
        with django_assert_max_num_queries(max_queries):
            assert client.get(path).status_code == 200


def test_guessing_the_names_of_labs_is_slowed(
    case: Case, manager: User, stranger: User, other_lab: Lab, api_as: Any, client: Client
) -> None:
    api, path = api_as(manager), f"/api/v1/cases/{case.pk}/shares/"
    until = (today() + timedelta(days=3)).isoformat()
    for number in range(LAB_NAMES[0].count):
        answer = api.post(path, {"with_lab": f"guess-{number}", "until": until}, format="json")
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown-lab")
    right = api.post(path, {"with_lab": "south", "until": until}, format="json")
    assert (right.status_code, right.json()["code"]) == (429, "too-many-attempts")
    assert right["RateLimit-Policy"] == '"too-many-attempts";q=10;w=3600'
    wait_s = int(right["Retry-After"])
    assert 0 < wait_s <= 3600
    assert right["RateLimit"] == f'"too-many-attempts";r=0;t={wait_s}'
    client.force_login(manager)
    page = client.post(f"/cases/{case.pk}/shares/", {"with_lab": "south", "until": until})
    assert page.status_code == 429 and "Too many names that no lab has" in page.content.decode()
    assert not CaseShare.objects.exists()
    Attempt.objects.update(at=timezone.now() - LAB_NAMES[0].within)
    assert api.post(path, {"with_lab": "south", "until": until}, format="json").status_code == 201


def test_several_managers_of_a_lab_guess_no_faster(case: Case, manager: User) -> None:
    for number in range(LAB_NAMES_OF_LAB[0].count):
        colleague = User.objects.create_user(f"m{number}@north.example", "correct horse battery")
        Membership.objects.create(user=colleague, lab=case.lab, role=Role.MANAGER)
        with pytest.raises(InvalidInputError):
            offered(case, colleague, name="guess")
    with pytest.raises(TooManyRequestsError):
        offered(case, manager, name="guess")


def test_names_that_are_right_do_not_count(
    case: Case, manager: User, stranger: User, other_lab: Lab
) -> None:
    for _ in range(LAB_NAMES[0].count + 5):
        share_end(share=offered(case, manager), user=manager)
    assert Attempt.objects.count() == 0
