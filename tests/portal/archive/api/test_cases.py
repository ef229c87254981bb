"""REST of the archive: what it answers, to whom, at what cost."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.labs.models import Lab, Membership, User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


# --- cases -----------------------------------------------------------------------------------


def test_a_case_is_created_read_changed_and_deleted(api: APIClient, lab: Lab) -> None:
    made = api.post("/api/v1/cases/", {"accession": "S-9", "organ": "lung", "tags": ["a", "A"]})
    assert made.status_code == 201
    assert (made.json()["lab"], made.json()["tags"]) == (str(lab.pk), ["a"])
    path = f"/api/v1/cases/{made.json()['id']}/"
    assert (
        api.patch(path, {"diagnosis": "Adenoma"}, headers={"If-Match": "*"}).json()["diagnosis"]
        == "Adenoma"
    )
    assert api.get(path).json()["organ"] == "lung"
    assert (
        api.put(path, {"accession": "S-10"}, headers={"If-Match": "*"}).json()["accession"]
        == "S-10"
    )
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_question_and_notes_are_stored_and_found(api: APIClient, lab: Lab) -> None:
    body = {"accession": "S-9", "clinical_question": "Margins?", "notes": "First\nSecond"}
    made = api.post("/api/v1/cases/", body)
    assert (made.json()["clinical_question"], made.json()["notes"]) == ("Margins?", "First\nSecond")
    path = f"/api/v1/cases/{made.json()['id']}/"
    stale = made.headers["ETag"]
    assert api.patch(path, {"notes": "Third"}, headers={"If-Match": stale}).status_code == 200
    lost = api.patch(path, {"notes": "Fourth"}, headers={"If-Match": stale})
    assert lost.status_code == 412
    assert len(api.get("/api/v1/cases/", {"q": "third"}).json()["results"]) == 1
    assert api.get("/api/v1/cases/", {"q": "second"}).json()["results"] == []
    too_long = api.patch(path, {"notes": "x" * 10_001}, headers={"If-Match": "*"})
    assert too_long.status_code == 400
    assert "notes" in str(too_long.json())


def test_an_accession_is_used_once_in_a_lab(api: APIClient, case: Case) -> None:
    answer = api.post("/api/v1/cases/", {"accession": "S-1"})
    assert (answer.status_code, answer.json()["code"]) == (409, "accession-taken")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "accession"),
        ({"accession": "   "}, "accession"),
        ({"accession": "x" * 65}, "accession"),
        ({"accession": "x", "sex": "robot"}, "sex"),
        ({"accession": "x", "tags": ["t" * 41]}, "tags"),
        ({"accession": "x", "tags": "red"}, "tags"),
        ({"accession": "x", "lab": "no-uuid"}, "lab"),
        ({"accession": "x\u0000"}, "null character"),
    ],
)
def test_a_bad_case_is_refused_by_the_name_of_its_field(
    api: APIClient, body: dict[str, Any], names: str
) -> None:
    answer = api.post("/api/v1/cases/", body)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert names in answer.json()["detail"]


def test_a_user_who_writes_in_two_labs_names_one(
    api: APIClient, annotator: User, other_lab: Lab
) -> None:
    Membership.objects.create(user=annotator, lab=other_lab, role="annotator")
    assert api.post("/api/v1/cases/", {"accession": "x"}).status_code == 400
    made = api.post("/api/v1/cases/", {"accession": "x", "lab": str(other_lab.pk)})
    assert made.json()["lab"] == str(other_lab.pk)
    moved = api.patch(
        f"/api/v1/cases/{made.json()['id']}/", {"lab": str(uuid.uuid4())}, headers={"If-Match": "*"}
    )
    assert moved.status_code == 400


def test_cases_are_searched_filtered_and_sorted(api: APIClient, lab: Lab, annotator: User) -> None:
    for accession, organ in (("A", "colon"), ("B", "lung"), ("C", "colon")):
        case_create(lab=lab, user=annotator, accession=accession, organ=organ, tags=[organ[:2]])

    def found(query: str) -> list[str]:
        rows = api.get(f"/api/v1/cases/?{query}").json()["results"]
        return [row["accession"] for row in rows]

    assert found("organ=COLON&ordering=accession") == ["A", "C"]
    assert found("organ=colon&ordering=-accession") == ["C", "A"]
    assert found("q=lung") == ["B"]
    assert found("tag=lu") == ["B"]
    cursor = api.get("/api/v1/cases/?page_size=1&ordering=accession").json()["next"]
    assert [row["accession"] for row in api.get(cursor).json()["results"]] == ["B"]
    assert api.get("/api/v1/cases/?sex=robot").status_code == 400


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("path", ["cases", "slides"])
def test_lists_cost_the_same_for_one_row_and_thirty(
    api: APIClient, lab: Lab, annotator: User, case: Case, receive: Any, path: str, count: int,
    django_assert_max_num_queries: Any,
) -> None:  # fmt: skip
    for number in range(count):
        case_create(lab=lab, user=annotator, accession=f"N-{number}")
        receive(case, picture(8, 8, seed=number), f"{number}.png")
    with django_assert_max_num_queries(4):  # one of them is the audit log's
        assert len(api.get(f"/api/v1/{path}/").json()["results"]) >= count


# --- slides and videos -----------------------------------------------------------------------


# --- canvases --------------------------------------------------------------------------------


# --- who may ---------------------------------------------------------------------------------


def test_the_matches_of_a_filter_are_tagged(api: APIClient, lab: Lab, annotator: User) -> None:
    for number, organ in enumerate(("colon", "colon", "lung")):
        case_create(lab=lab, user=annotator, accession=f"F-{number}", organ=organ)
    body = {"filter": {"organ": "Colon"}, "add": ["teaching"]}
    answer = api.post("/api/v1/cases/bulk/tags/", body)
    assert answer.status_code == 200
    assert (len(answer.json()["changed"]), answer.json()["problems"]) == (2, [])
    assert len(api.get("/api/v1/cases/", {"tag": "teaching"}).json()["results"]) == 2


def test_the_answer_to_details_of_many_cases_takes_them_back(
    api: APIClient, lab: Lab, annotator: User
) -> None:
    for number, organ in enumerate(("colon", "colon", "lung")):
        case_create(lab=lab, user=annotator, accession=f"F-{number}", organ=organ)
    url = "/api/v1/cases/bulk/details/"
    answer = api.post(url, {"filter": {}, "organ": "Rectum", "diagnosis": ""})
    assert answer.status_code == 200
    assert (len(answer.json()["changed"]), answer.json()["unchanged"]) == (3, 0)
    before = {row["organ"]: row for row in answer.json()["before"]}
    assert {organ: len(row["cases"]) for organ, row in before.items()} == {"colon": 2, "lung": 1}
    for row in before.values():
        assert api.post(url, row).status_code == 200
    organs = [row["organ"] for row in api.get("/api/v1/cases/").json()["results"]]
    assert sorted(organs) == ["colon", "colon", "lung"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"add": ["a"]}, "give one of them"),
        ({"cases": [], "filter": {}, "add": ["a"]}, "give one of them"),
        ({"cases": [], "add": ["a"]}, "1 to 1,000"),
        ({"filter": {"colour": "red"}, "add": ["a"]}, "unknown parameter colour"),
        ({"filter": {"sex": "robot"}, "add": ["a"]}, "filter: sex"),
        ({"filter": {}}, "at least one tag"),
    ],
)
def test_a_bad_selection_is_refused(
    api: APIClient, case: Case, body: dict[str, Any], says: str
) -> None:
    answer = api.post("/api/v1/cases/bulk/tags/", body)
    assert answer.status_code == 400
    assert says in str(answer.json())
