"""Sparse answers of lists and details."""

from __future__ import annotations

from typing import Any

import pytest

from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(lab: Lab, annotator: User, api_as: Any) -> Any:
    from portal.archive.services.cases import case_create

    case_create(lab=lab, user=annotator, accession="S-1", organ="colon")
    return api_as(annotator)


def test_lists_and_details_have_the_requested_fields(api: Any) -> None:
    page = api.get("/api/v1/cases/?fields=id,%20organ").json()
    assert len(page["results"]) == 1
    assert set(page["results"][0]) == {"id", "organ"}
    body = api.get(f"/api/v1/cases/{page['results'][0]['id']}/?fields=accession").json()
    assert body == {"accession": "S-1"}


def test_without_the_parameter_all_fields_are_present(api: Any) -> None:
    assert {"id", "accession", "organ"} <= set(api.get("/api/v1/cases/").json()["results"][0])


@pytest.mark.parametrize(
    ("expected", "named"), [("id,patient_name", "patient_name"), ("", "nothing")]
)
def test_an_unknown_name_is_refused_with_the_valid_names(
    api: Any, expected: str, named: str
) -> None:
    answer = api.get("/api/v1/cases/", {"fields": expected})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (400, "unknown-field")
    assert f"fields: {named}: unknown field" in body["detail"]
    assert "accession" in body["known"]


@pytest.mark.parametrize("path", ["slides", "videos", "jobs", "mosaics", "labels"])
def test_every_main_list_can_be_sparse(api: Any, path: str) -> None:
    assert api.get(f"/api/v1/{path}/?fields=id").status_code == 200
    assert api.get(f"/api/v1/{path}/?fields=nope").status_code == 400


def test_an_error_is_returned_with_all_members(api: Any) -> None:
    answer = api.get("/api/v1/cases/00000000-0000-0000-0000-000000000000/?fields=id")
    assert {"status", "detail", "code"} <= set(answer.json())


def test_an_address_without_get_answers_405(api: Any) -> None:
    answer = api.get("/api/v1/jobs/cancel/?fields=id")
    assert answer.status_code == 405
    case = api.get("/api/v1/cases/").json()["results"][0]["id"]
    assert api.get(f"/api/v1/trash/{case}/restore/").status_code == 405
