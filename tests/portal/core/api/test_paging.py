"""Cursor pages: complete, ordered, in both directions, also while rows are added or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.signing import Signer
from django.db import connection
from django.db.models import F, QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.core.api.paging import InOrder, Paging
from portal.core.errors import InvalidInputError
from portal.jobs.models import Job
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
CASES = "/api/v1/cases/"
Page = tuple[list[Any], str | None, str | None]


@pytest.fixture
def api(annotator: User, api_as: Any) -> Any:
    return api_as(annotator)


@pytest.fixture
def make(lab: Lab, annotator: User) -> Callable[[str], Case]:
    def made(accession: str, organ: str = "colon") -> Case:
        return case_create(lab=lab, user=annotator, accession=accession, organ=organ)

    return made


def page_of(rows: QuerySet[Any] | InOrder, address: str) -> Page:
    paging = Paging()
    page = paging.paginate_queryset(rows, Request(APIRequestFactory().get(address)))
    return page, paging.next, paging.previous


def joined(pages: Iterable[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(pages))


def walked(rows: QuerySet[Any] | InOrder, *, size: int, back: bool = False) -> Iterator[list[Any]]:
    """All pages on from the first; with ``back`` those on the way back from the last."""
    there, before = f"/x/?page_size={size}", None
    while there:
        result, following, before = page_of(rows, there)
        if not back:
            yield result
        there = following or ""
    while back and before:
        result, _, before = page_of(rows, before)
        yield result


@pytest.mark.parametrize("ordering", ["", "organ", "-organ", "-updated_at", "accession"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_every_row_comes_once_and_in_order(
    make: Callable[..., Case], ordering: str, size: int
) -> None:
    for number in range(7):
        make(f"S-{number}", ("colon", "breast", "lung")[number % 3])
    rows = Case.objects.order_by(ordering, "id") if ordering else Case.objects.all()
    pages = list(walked(rows, size=size))
    assert joined(pages) == list(rows)
    assert all(len(page) == size for page in pages[:-1])
    returned = list(walked(rows, size=size, back=True))
    assert joined(reversed(returned)) == joined(pages[:-1])


@pytest.mark.parametrize("ordering", ["-created_at", "created_at", "-updated_at"])
def test_rows_of_one_moment_are_ordered_by_their_ids(
    api: Any, make: Callable[[str], Case], ordering: str
) -> None:
    """Rows of one import share a time stamp, and PostgreSQL returns equal keys in any order."""
    there = [make(f"S-{number}") for number in range(9)]
    moment = timezone.now()
    for case in reversed(there[2:]):  # written again: PostgreSQL keeps them elsewhere now
        Case.objects.filter(pk=case.pk).update(created_at=moment, updated_at=moment)
    result, address = [], f"{CASES}?ordering={ordering}&page_size=2"
    while address:
        page = api.get(address).json()
        result += [row["id"] for row in page["results"]]
        before, address = page["previous"], page["next"]
    back = [page["results"][0]["id"]]
    while before:
        page = api.get(before).json()
        back = [row["id"] for row in page["results"]] + back
        before = page["previous"]
    assert (
        result
        == back
        == [
            str(item) for item in Case.objects.order_by(ordering, "pk").values_list("pk", flat=True)
        ]
    )
    same = [item for item in result if item in {str(case.pk) for case in there[2:]}]
    assert same == sorted(same)


@pytest.mark.parametrize(
    "order",
    [
        F("finished_at").asc(nulls_last=True),
        F("finished_at").desc(nulls_last=True),
        F("finished_at").asc(nulls_first=True),
        F("finished_at").desc(nulls_first=True),
        "finished_at",
        "-finished_at",
    ],
)
def test_rows_without_a_value_have_their_place(lab: Lab, annotator: User, order: Any) -> None:
    now = timezone.now()
    for day in (3, None, 1, None, 1, 2, None):
        ended = None if day is None else now - timedelta(days=day)
        Job.objects.create(kind="x", lab=lab, created_by=annotator, finished_at=ended)
    for rows in (Job.objects.order_by(order), Job.objects.order_by(order, "-kind", "-id")):
        all_rows = list(rows.order_by(*rows.query.order_by, "id"))
        assert joined(walked(rows, size=2)) == all_rows
        assert joined(reversed(list(walked(rows, size=2, back=True)))) == all_rows[:6]


def test_insertions_and_deletions_move_no_page(api: Any, make: Callable[..., Case]) -> None:
    there = [make(f"S-{number}") for number in range(6)]
    first = api.get(CASES, {"page_size": 2}).json()
    assert [row["accession"] for row in first["results"]] == ["S-5", "S-4"]
    assert first["previous"] is None and "count" not in first
    make("S-6")
    there[3].delete()
    there[4].delete()  # the last one of the page before
    second = api.get(first["next"]).json()
    assert [row["accession"] for row in second["results"]] == ["S-2", "S-1"]
    assert [row["accession"] for row in api.get(second["previous"]).json()["results"]] == [
        "S-6",
        "S-5",
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8])
def test_lists_in_memory_have_the_same_pages(size: int) -> None:
    rows = [(1.5, "b"), (1.5, "c"), (2.0, "a"), (2.0, "b"), (3.25, "a"), (4.0, "x"), (4.0, "y")]
    listed = InOrder("things", rows, lambda row: row)
    pages = list(walked(listed, size=size))
    assert joined(pages) == rows
    assert joined(reversed(list(walked(listed, size=size, back=True)))) == joined(pages[:-1])


def test_insertions_and_deletions_in_memory_move_no_page() -> None:
    def things(*rows: tuple[int, str]) -> InOrder:
        return InOrder("things", rows, lambda row: row)

    _, following, _ = page_of(things((1, "a"), (2, "a"), (3, "a"), (4, "a")), "/x/?page_size=2")
    there = things((0, "a"), (1, "a"), (3, "a"), (4, "a"), (5, "a"))
    result, _, before = page_of(there, str(following))
    assert result == [(3, "a"), (4, "a")]
    assert page_of(there, str(before))[0] == [(0, "a"), (1, "a")]
    with pytest.raises(InvalidInputError, match="order"):
        page_of(InOrder("others", [], lambda row: row), str(following))


def test_a_page_that_was_emptied_leads_back(api: Any, make: Callable[..., Case]) -> None:
    there = [make(f"S-{number}") for number in range(5)]
    first = api.get(CASES, {"page_size": 3}).json()
    for case in there[:2]:
        case.delete()  # all of the second page
    emptied = api.get(first["next"]).json()
    assert (emptied["results"], emptied["next"]) == ([], None)
    back = api.get(emptied["previous"]).json()
    assert [row["accession"] for row in back["results"]] == ["S-4", "S-3", "S-2"]
    assert (back["next"], back["previous"]) == (None, None)
    make("S-5")
    back = api.get(emptied["previous"]).json()
    assert [row["accession"] for row in back["results"]] == ["S-4", "S-3", "S-2"]
    assert back["next"] is None
    assert [row["accession"] for row in api.get(back["previous"]).json()["results"]] == ["S-5"]


def test_a_page_that_was_emptied_leads_on(api: Any, make: Callable[..., Case]) -> None:
    there = [make(f"S-{number}") for number in range(5)]
    second = api.get(api.get(CASES, {"page_size": 2}).json()["next"]).json()
    for case in there[3:]:
        case.delete()  # all of the first page
    emptied = api.get(second["previous"]).json()
    assert (emptied["results"], emptied["previous"]) == ([], None)
    onward = api.get(emptied["next"]).json()
    assert [row["accession"] for row in onward["results"]] == ["S-2", "S-1"]
    assert onward["previous"] is None


def test_an_empty_list_leads_nowhere(api: Any, make: Callable[..., Case]) -> None:
    only = [make("S-0"), make("S-1")]
    following = api.get(CASES, {"page_size": 1}).json()["next"]
    for case in only:
        case.delete()
    emptied = api.get(following).json()
    for address in (CASES, emptied["previous"]):
        answer = api.get(address).json()
        assert answer == {"next": None, "previous": None, "results": []}


def test_page_links_are_absolute_and_preserve_the_query(
    api: Any, make: Callable[..., Case]
) -> None:
    for number in range(3):
        make(f"S-{number}")
    requested = f"{CASES}?ordering=accession&organ=colon&page_size=1"
    following = api.get(requested).json()["next"]
    assert following.startswith("http://testserver/api/v1/cases/?")
    qs = parse_qs(urlsplit(following).query)
    assert qs.pop("cursor")
    assert qs == {"ordering": ["accession"], "organ": ["colon"], "page_size": ["1"]}


@pytest.mark.parametrize(
    "expected", ["", "x", "1", "eyJ4IjoxfQ", "\x00", "ü" * 9, "a:b:c", "-" * 5000]
)
def test_a_bad_cursor_is_refused(api: Any, expected: str) -> None:
    answer = api.get(CASES, {"cursor": expected})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-cursor")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "follow `next`" in answer.json()["detail"]


def test_a_cursor_is_of_one_list_and_one_order(api: Any, make: Callable[..., Case]) -> None:
    for accession in ("S-1", "S-2"):
        make(accession)
    following = api.get(CASES, {"page_size": 1}).json()["next"]
    (cursor,) = parse_qs(urlsplit(following).query)["cursor"]
    assert api.get(CASES, {"cursor": cursor}).status_code == 200
    assert api.get(CASES, {"cursor": cursor, "ordering": "accession"}).status_code == 400
    assert api.get("/api/v1/slides/", {"cursor": cursor}).status_code == 400
    forged = Signer(key="another key", salt="paging:archive.Case:-created_at,id")
    assert api.get(CASES, {"cursor": forged.sign_object([["x", "y"], False])}).status_code == 400


@pytest.mark.parametrize("expected", ["0", "-1", "x", "1.5", "²", "", "9" * 5000])
def test_a_page_size_that_is_no_number_is_the_usual_one(expected: str) -> None:
    request = Request(APIRequestFactory().get("/x/", {"page_size": expected}))
    assert Paging().get_page_size(request) == 50


def test_a_page_has_at_most_two_hundred(api: Any) -> None:
    request = Request(APIRequestFactory().get("/x/?page_size=9999999999999999"))
    assert Paging().get_page_size(request) == 200
    request = Request(APIRequestFactory().get("/x/?page_size=0000000000007"))
    assert Paging().get_page_size(request) == 7


def test_a_repeated_column_counts_once(api: Any, make: Callable[..., Case]) -> None:
    for number in range(3):
        make(f"S-{number}")
    params = {"ordering": ",".join(["organ", "-accession", "accession"] * 400), "page_size": "1"}
    first = api.get(CASES, params).json()
    second = api.get(first["next"])
    assert second.status_code == 200
    rows = [*first["results"], *second.json()["results"]]
    assert [row["accession"] for row in rows] == ["S-2", "S-1"]


def test_a_page_needs_one_query_without_a_count(api: Any, make: Callable[..., Case]) -> None:
    for number in range(4):
        make(f"S-{number}")
    rows = Case.objects.select_related("lab").order_by("lab__name", "accession", "id")
    _, following, _ = page_of(rows, "/x/?page_size=2")
    with CaptureQueriesContext(connection) as queries:
        page_of(rows, following or "")
    assert len(queries) == 1
    assert "COUNT" not in queries[0]["sql"]
    assert "OFFSET" not in queries[0]["sql"]
