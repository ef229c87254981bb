"""Description and properties: with history, typed by the lab, exchanged as QuPath keeps them."""

from __future__ import annotations

import json

import pytest
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.properties import properties_clean, types_clean
from portal.annotations.qupath import feature_read
from portal.annotations.selectors.labels import property_types_of
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.properties import property_types_set
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError
from portal.labs.models import Lab, User
from tests.portal.annotations.formats.test_both_ways import roi as made_roi
from tests.portal.annotations.formats.test_both_ways import written
from tests.portal.annotations.support import box, collection, feature

GRADE = {"key": "Grade", "kind": "choice", "choices": ["1", "2", "3"]}
SIZE = {"key": "Size", "kind": "number"}


@pytest.mark.django_db
def test_rest_stores_reverts_and_lists_the_history_of_properties(
    roi: Roi, annotator: User, manager: User
) -> None:
    property_types_set(lab=roi.lab, user=manager, types=[GRADE, SIZE])
    api = APIClient()
    api.force_login(annotator)
    at = f"/api/v1/rois/{roi.pk}/"

    def patch(version: int, **body: object) -> dict[str, object]:
        headers = {"If-Match": f'"{version}"'}
        answer: dict[str, object] = api.patch(at, body, format="json", headers=headers).json()
        return answer

    data = {"grade": "2", "Margin": "clear", "Size": "1.5"}
    first = patch(1, description="Near\nthe margin", properties=data)
    assert (first["description"], first["properties"]) == ("Near\nthe margin", data)
    assert patch(2, properties={"Grade": "7"})["code"] == "property-type"
    assert patch(2, properties={"Size": "large"})["code"] == "property-type"
    assert patch(2, properties={"Grade": "", "Free": "yes"})["properties"] == {"Free": "yes"}
    listed = api.get("/api/v1/rois/", {"canvas": str(roi.canvas_id)}).json()["results"][0]
    assert (listed["description"], listed["properties"]) == ("Near\nthe margin", {"Free": "yes"})
    history = api.get(f"{at}revisions/").json()["results"]
    assert [entry["properties"] for entry in history] == [{}, data, {"Free": "yes"}]
    back = api.post(f"{at}restore/", {"version": 2}, format="json", headers={"If-Match": '"3"'})
    assert back.json()["properties"] == data
    change = {"do": "update", "id": str(roi.pk), "version": 4, "properties": {"Grade": "3"}}
    bulk = {"canvas": str(roi.canvas_id), "changes": [change]}
    answer = api.post("/api/v1/rois/bulk/", bulk, format="json").json()
    assert answer["rois"][0]["properties"] == {"Grade": "3"}


@pytest.mark.django_db
def test_managers_define_the_properties_of_a_lab(lab: Lab, manager: User) -> None:
    property_types_set(lab=lab, user=manager, types=[GRADE, SIZE])
    assert [(item.key, item.kind) for item in property_types_of(lab.pk)] == [
        ("Grade", "choice"),
        ("Size", "number"),
    ]


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ([GRADE, {"key": "grade"}], "twice"),
        ([{"key": "X", "kind": "choice"}], "choices"),
        ([{"key": "X", "kind": "date"}], "kind"),
        ([{"key": " "}], "a key has"),
        ([{"key": "X", "name": "n" * 81}], "a key has"),
        ([{"key": "X", "kind": "number", "unit": "u" * 21}], "a unit has"),
        ([GRADE, {"key": "X", "name": "grade"}], "twice"),
        ("Grade", "a list"),
    ],
)
def test_types_that_make_no_sense_are_named(types: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        types_clean(types)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ([], "an object"),
        ({"": "x"}, "a key has"),
        ({"tessera.x": "x"}, "are reserved"),
        ({"a": 7}, "not text"),
        ({"a": "x" * 1001}, "longer"),
        ({str(n): "x" for n in range(51)}, "51; 50"),
    ],
)
def test_invalid_properties_are_named(properties: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        properties_clean(properties)


def test_geojson_has_properties_as_in_qupath_and_csv_a_column_each() -> None:
    item = made_roi(box(1, 1, 9, 9), description="=thin", properties={"Grade": "2"})
    other = made_roi(box(1, 1, 9, 9), properties={"Margin": "clear"})
    (feature, _) = json.loads(written("geojson", item, other))["features"]
    metadata = feature["properties"]["metadata"]
    assert (metadata["ANNOTATION_DESCRIPTION"], metadata["Grade"]) == ("=thin", "2")
    back = feature_read(feature)
    assert (back.description, back.properties, back.foreign) == ("=thin", {"Grade": "2"}, {})
    lines = written("csv", item, other).decode("utf-8-sig").splitlines()
    assert lines[0].endswith("description,property.Grade,property.Margin")
    assert lines[1].endswith(",'=thin,2,")


@pytest.mark.django_db
def test_an_import_brings_properties_and_a_repeat_changes_nothing(
    canvas: Canvas, annotator: User
) -> None:
    metadata = {"ANNOTATION_DESCRIPTION": "old", "Grade": "9", "n": 7}
    document = collection(feature(id="6f1e4d5c-0000-4000-8000-000000000001", metadata=metadata))
    roi_import(canvas=canvas, user=annotator, document=document)
    row = Roi.objects.get(canvas=canvas)
    assert (row.description, row.properties) == ("old", {"Grade": "9"})
    assert row.foreign == {"metadata": {"n": 7}}
    again = roi_import(canvas=canvas, user=annotator, document=document)
    assert again.count("unchanged") == 1
