"""Files of each QuPath version import completely and export in the newest format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import shapely

from portal.annotations.models import Roi
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.reading import file_source
from portal.archive.models import Canvas
from portal.labs.models import Lab, User
from tests.portal.annotations import qupath_written as written
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import exported, statuses

pytestmark = pytest.mark.django_db
DERIVED = ("Area px^2", "Area um^2", "Length px", "Length um", "Num points")
"""Measurements that an export adds."""
QUPATH_FILES = Path(__file__).parents[1] / "formats" / "written"
"""Files that QuPath wrote, of other projects; NOTICE names them."""


def brought(canvas: Canvas, user: User, text: str) -> list[dict[str, Any]]:
    """Imported from the very bytes; what is exported then, without what is ours."""
    source = file_source(io.BytesIO(text.encode()), canvas)
    report = roi_import(canvas=canvas, user=user, document=source)
    assert set(statuses(report)) == {"created"}, report.items
    assert not [item.notes for item in report.items if item.notes]
    return [as_qupath_has_it(feature) for feature in exported(canvas)["features"]]


def as_qupath_has_it(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature["properties"]
    for key, ours in (("measurements", DERIVED), ("metadata", ("tessera.review_state",))):
        stored = {name: value for name, value in properties[key].items() if name not in ours}
        properties = {name: value for name, value in properties.items() if name != key}
        properties |= {key: stored} if stored else {}
    return feature | {"properties": properties}


def test_a_0_5_document_is_exported_unchanged(canvas: Canvas, manager: User) -> None:
    assert brought(canvas, manager, written.V05) == json.loads(written.V05)["features"]


def test_a_plane_and_duplicated_metadata(video_canvas: Canvas, manager: User) -> None:
    assert (
        brought(video_canvas, manager, written.V07_VIDEO)
        == json.loads(written.V07_VIDEO)["features"]
    )


@pytest.mark.parametrize("name", ["qupath05.geojson", "qupath_classes.geojson"])
def test_a_file_written_by_qupath_is_exported_unchanged(lab: Lab, manager: User, name: str) -> None:
    slide = make_canvas(lab, width_px=60_000, height_px=40_000)
    text = (QUPATH_FILES / name).read_text()
    assert brought(slide, manager, text) == json.loads(text)["features"]
    again = roi_import(canvas=slide, user=manager, document=json.loads(text))
    assert set(statuses(again)) == {"unchanged"}


@pytest.mark.parametrize("text", [written.V02, written.V03, written.V05], ids=["0.2", "0.3", "0.5"])
def test_outlines_are_unchanged(canvas: Canvas, manager: User, text: str) -> None:
    document = json.loads(text)
    features = document if isinstance(document, list) else document["features"]
    for before, after in zip(features, brought(canvas, manager, text), strict=True):
        assert before["geometry"]["coordinates"] == after["geometry"]["coordinates"]
        assert before.get("nucleusGeometry") == after.get("nucleusGeometry")
        assert shapely.geometry.shape(after["geometry"]).is_valid


@pytest.mark.parametrize("text", [written.V02, written.V03, written.V05], ids=["0.2", "0.3", "0.5"])
def test_a_second_export_and_import_changes_nothing(
    canvas: Canvas, manager: User, text: str
) -> None:
    brought(canvas, manager, text)
    document = exported(canvas)
    again = roi_import(canvas=canvas, user=manager, document=document)
    assert set(statuses(again)) == {"unchanged"}
    Roi.objects.all().delete()
    roi_import(canvas=canvas, user=manager, document=document)
    assert exported(canvas) == document


def test_a_0_2_document_is_exported_like_0_5(canvas: Canvas, manager: User) -> None:
    annotation, detection = (roi["properties"] for roi in brought(canvas, manager, written.V02))
    assert annotation == {
        "objectType": "annotation",
        "name": "first",
        "classification": {"name": "Front", "color": [200, 0, 0]},
    }
    assert detection["objectType"] == "detection"
    assert detection["classification"]["names"] == ["Front", "Positive"]
    assert detection["measurements"] == {"Circularity": 0.8123, "DAB: Mean": "NaN"}


def test_a_0_3_document_is_exported_like_0_5(canvas: Canvas, manager: User) -> None:
    annotation, cell, core = (roi["properties"] for roi in brought(canvas, manager, written.V03))
    assert annotation == {
        "objectType": "annotation",
        "name": "Region 1",
        "color": [0, 128, 255],
        "classification": {"name": "Desmoplasia", "color": [150, 200, 150]},
        "isLocked": True,
    }
    assert cell == {
        "objectType": "cell",
        "measurements": {"Nucleus: Area": 25.0, "Cell: Area": 132.0},
    }
    assert core == {"objectType": "tmaCore", "name": "B-7", "isMissing": True}
