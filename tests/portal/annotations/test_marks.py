"""Points and lines: stored as drawn, measured, exchanged, undone, and never embedded."""

from __future__ import annotations

import io
import json
from typing import Any

import highdicom
import numpy as np
import pytest
from PIL import Image
from rest_framework.test import APIClient

from portal.annotations.formats.registry import READERS, WRITERS, reader_of
from portal.annotations.geometry import InvalidRoiGeometryError
from portal.annotations.marks import outline_from_geojson
from portal.annotations.qupath import feature_read
from portal.annotations.selectors.measurements import measurements_of
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.formats.test_both_ways import PLANE, roi, written
from tests.portal.annotations.support import box

ROIS = "/api/v1/rois/"
DOT = {"type": "Point", "coordinates": [10.25, 20.5]}
DOTS = {"type": "MultiPoint", "coordinates": [[10, 20], [30, 40], [50, 60]]}
LINE = {"type": "LineString", "coordinates": [[10, 10], [40, 50], [40, 90]]}
LINES = {"type": "MultiLineString", "coordinates": [[[1, 1], [9, 1]], [[1, 5], [9, 5]]]}
ALL = (DOT, DOTS, LINE, LINES)
SIZE = {"width_px": 1000, "height_px": 800}


@pytest.mark.parametrize("geometry", ALL, ids=lambda item: item["type"])
def test_a_mark_is_stored_as_drawn_and_unchanged_if_saved_again(geometry: dict[str, Any]) -> None:
    shape = outline_from_geojson(geometry, **SIZE)
    assert (shape.geometry, shape.notes, shape.area_px) == (geometry, (), 0.0)
    assert outline_from_geojson(shape.geometry, **SIZE).geometry == geometry


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ({"type": "Point", "coordinates": [1, float("nan")]}, "finite"),
        ({"type": "Point"}, "not a pair"),
        ({"type": "MultiPoint", "coordinates": []}, "needs coordinates"),
        ({"type": "LineString", "coordinates": [[5, 5], [5, 5]]}, "no length"),
        ({"type": "MultiLineString", "coordinates": [7]}, "needs coordinates"),
        ({"type": "Point", "coordinates": [-1, 5]}, "outside the canvas"),
        ({"type": "LineString", "coordinates": [[-9, -9], [-1, 5]]}, "outside the canvas"),
    ],
)
def test_errors_name_the_invalid_field(geometry: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRoiGeometryError, match=words):
        outline_from_geojson(geometry, **SIZE)


def test_marks_are_cut_at_the_canvas_edge() -> None:
    line = outline_from_geojson({"type": "LineString", "coordinates": [[-50, 8], [50, 8]]}, **SIZE)
    assert line.geometry == {"type": "LineString", "coordinates": [[0, 8], [50, 8]]}
    points = {"type": "MultiPoint", "coordinates": [[-1, 1], [1000, 800]]}
    left = outline_from_geojson(points, **SIZE)
    assert left.geometry == {"type": "Point", "coordinates": [1000, 800]}
    assert left.notes == line.notes == ("clipped to the canvas",)


@pytest.mark.django_db
def test_marks_are_drawn_measured_listed_moved_and_restored_over_rest(
    lab: Lab, annotator: User
) -> None:
    canvas = make_canvas(lab, mpp_x=0.5, mpp_y=0.25)
    api = APIClient()
    api.force_login(annotator)
    made = [
        api.post(ROIS, {"canvas": str(canvas.pk), "geometry": item}, format="json").json()
        for item in ALL
    ]
    facts = [(item["shape"], item["points"], item["length_px"], item["length_um"]) for item in made]
    assert facts == [
        ("point", 1, None, None),
        ("point", 3, None, None),
        ("line", None, 90.0, pytest.approx(np.hypot(15, 10) + 10, abs=1e-4)),
        ("line", None, 16.0, 8.0),
    ]
    for centroids in ("false", "true"):
        listed = api.get(ROIS, {"canvas": str(canvas.pk), "centroids": centroids}).json()
        rows = [
            (r["shape"], r["points"], r["length_px"], r["length_um"]) for r in listed["results"]
        ]
        assert rows == facts
    at = f"{ROIS}{made[2]['id']}/"
    moved = {"geometry": {"type": "LineString", "coordinates": [[0, 0], [3, 4]]}}
    assert api.patch(at, moved, format="json", headers={"If-Match": '"1"'}).json()["length_px"] == 5
    back = api.post(f"{at}restore/", {"version": 1}, format="json", headers={"If-Match": '"2"'})
    assert (back.json()["geometry"], back.json()["shape"]) == (LINE, "line")
    assert not Job.objects.exists()
    assert api.get(f"{at}similar/").status_code == 409
    assert api.get(f"{at}similar/").json()["code"] == "no-area"


@pytest.mark.django_db
def test_only_areas_have_key_frames(video_canvas: Canvas, annotator: User) -> None:
    track = [{"index": 2, "geometry": box(1, 1, 9, 9)}]
    with pytest.raises(InvalidInputError, match="area"):
        roi_create(canvas=video_canvas, user=annotator, geometry=DOT, frame_index=0, track=track)


@pytest.mark.django_db
def test_the_table_has_columns_for_marks_if_there_are_any(canvas: Canvas, annotator: User) -> None:
    roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9))
    assert "length_um" not in {
        item.key for item in measurements_of(annotator, canvas=canvas).columns
    }
    for geometry in (LINE, DOTS):
        roi_create(canvas=canvas, user=annotator, geometry=geometry)
    table = measurements_of(annotator, canvas=canvas)
    keys = [item.key for item in table.columns]
    values = {row.roi.shape: dict(zip(keys, row.values, strict=True)) for row in table.rows}
    assert (values["line"]["length_um"], values["line"]["area_um2"]) == (45.0, None)
    assert (values["point"]["points"], values["polygon"]["points"]) == (3, None)


@pytest.mark.parametrize("name", sorted(READERS.keys() & WRITERS.keys()))
def test_each_format_writes_the_marks_it_supports(name: str) -> None:
    data = written(name, *map(roi, ALL), roi(box(1, 1, 50, 50)))
    content = reader_of(io.BytesIO(data)).read(io.BytesIO(data), PLANE)
    back = [outline_from_geojson(feature_read(raw).geometry, **SIZE).geometry for raw in content]
    assert back[:2] == [DOT, DOTS]
    lengths = sum(
        np.hypot(*np.diff(np.array(line), axis=0).T).sum()
        for item in back
        if "LineString" in item["type"]
        for line in (item["coordinates"] if "Multi" in item["type"] else [item["coordinates"]])
    )
    assert lengths == (0 if name == "coco" else 106)
    assert back[-1]["type"] == "Polygon"
    if name == "coco":
        assert json.loads(data)["tessera"] == {"left_out": {"lines": 2}}


def test_measurements_are_in_geojson_and_csv_and_are_not_imported() -> None:
    data = json.loads(written("geojson", roi(LINE), roi(DOTS)))
    line, points = (item["properties"]["measurements"] for item in data["features"])
    assert line == {"Length px": 90.0, "Length um": 45.0}
    assert points == {"Num points": 3}
    assert feature_read(data["features"][0]).foreign == {}
    text = written("csv", roi(LINE), roi(DOTS)).decode("utf-8-sig")
    assert ",line," in text and "90.0" in text


def test_masks_omit_marks_and_dicom_has_groups_for_them(tmp_path: Any) -> None:
    data = written("dicom", *map(roi, ALL), roi(box(1, 1, 50, 50)))
    file = highdicom.ann.annread(io.BytesIO(data))
    kinds = {g.graphic_type.value: g.number_of_annotations for g in file.get_annotation_groups()}
    assert kinds == {"POINT": 4, "POLYLINE": 3, "POLYGON": 1}
    assert written("mask", roi(LINE))


def test_a_picture_shows_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    white = np.full((80, 100, 3), 255, np.uint8)
    monkeypatch.setattr("portal.annotations.formats.pictures.window_pixels", lambda *_: white)
    picture = Image.open(io.BytesIO(written("png", roi(LINE), roi(DOTS), window=(0, 0, 100, 80))))
    assert picture.getpixel((10, 20)) == (200, 0, 0)
    assert picture.getpixel((25, 30)) == (200, 0, 0)
