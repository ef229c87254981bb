"""Conditional GET: an unchanged object is 304."""

from __future__ import annotations

from typing import Any

import pytest

from portal.archive.services.cases import case_create
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
CASES = "/api/v1/cases/"


@pytest.mark.parametrize("place", [CASES, f"{CASES}?fields=id,organ", "/api/v1/me/"])
def test_an_unchanged_object_is_not_sent_again(
    lab: Lab, annotator: User, api_as: Any, place: str
) -> None:
    case_create(lab=lab, user=annotator, accession="S-1", organ="colon")
    api = api_as(annotator)
    first = api.get(place)
    tag = first.headers["ETag"]
    assert "no-store" in first.headers["Cache-Control"]  # a browser keeps no names of patients
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = api.get(place, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == tag
        assert "Content-Type" not in again.headers
    assert api.get(place, headers={"If-None-Match": '"other"'}).content == first.content
    if place != "/api/v1/me/":
        case_create(lab=lab, user=annotator, accession="S-2", organ="lung")
        changed = api.get(place, headers={"If-None-Match": tag})
        assert changed.status_code == 200 and changed.headers["ETag"] != tag


def test_an_etag_grants_no_access(lab: Lab, annotator: User, stranger: User, api_as: Any) -> None:
    case = case_create(lab=lab, user=annotator, accession="S-1")
    place = f"{CASES}{case.pk}/"
    tag = api_as(annotator).get(place).headers["ETag"]
    for known in (tag, "*"):
        assert api_as(stranger).get(place, headers={"If-None-Match": known}).status_code == 404
        refused = api_as(annotator).get(f"{place}?fields=no", headers={"If-None-Match": known})
        assert refused.status_code == 400 and "ETag" not in refused.headers
