"""Regions of a nominal area: read from properties, listed and summed with their nominal area."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.annotations.fixed_sizes import SIZE_KEYS, fixed_size, grid_sums
from portal.annotations.models import Roi
from portal.annotations.selectors.measurements import measurements_of
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import User
from tests.portal.annotations.formats.test_both_ways import roi as made_roi
from tests.portal.annotations.formats.test_both_ways import written
from tests.portal.annotations.support import box, exported

# a field is a square of 20 px, 10 um: the images of these tests have half a micron per pixel


def field(number: int, grid: str = "a1b2c3d4") -> dict[str, str]:
    """Properties of a field of two."""
    return {"Fixed size": f"field {number} of 2, 0.0001 mm²", "Field grid": grid}


@pytest.fixture
def grid(canvas: Canvas, annotator: User) -> list[Roi]:
    """Two fields of a grid."""
    return [
        roi_create(
            canvas=canvas,
            user=annotator,
            geometry=box(20 * at, 0, 20 * at + 20, 20),
            properties=field(at + 1),
        ).roi
        for at in range(2)
    ]


@pytest.mark.parametrize(
    ("text", "area_px", "expected"),
    [
        ("circle 2.37 mm²", 2.37e6, 2.37),
        ("square 1 mm²", 1.004e6, 1.0),
        ("square 1 mm²", 1.006e6, None),
        ("circle 2.37", 2.37e6, None),
        ("", 2.37e6, None),
    ],
)
def test_a_size_counts_only_with_its_area(text: str, area_px: float, expected: Any) -> None:
    size = fixed_size({"Fixed size": text}, area_px=area_px, mpp_x=1, mpp_y=1)
    assert (size.area_mm2 if size else None) == expected
    assert fixed_size({"Fixed size": text}, area_px=area_px, mpp_x=None, mpp_y=None) is None


def test_ten_fields_of_0_237_are_2_37_square_millimetres() -> None:
    sizes = [
        fixed_size(
            {"Fixed size": f"field {at} of 10, 0.237 mm²", "Field grid": "g"},
            area_px=237_000,
            mpp_x=1,
            mpp_y=1,
        )
        for at in range(1, 11)
    ]
    assert [item.text for item in grid_sums(sizes).values()] == ["10 fields, 2.37 mm²"]


@pytest.mark.django_db
def test_measurements_list_fields_and_sum_their_grid(
    canvas: Canvas, annotator: User, grid: list[Roi], client: Client
) -> None:
    roi_create(canvas=canvas, user=annotator, geometry=box(0, 50, 40, 90), properties=field(3))
    table = measurements_of(annotator, canvas=canvas)
    assert [item.text for item in table.grids] == ["2 fields, 0.0002 mm²"]
    assert [row.fixed_size is None for row in table.rows] == [True, False, False]  # another area
    client.force_login(annotator)
    url = f"/canvases/{canvas.pk}/measurements/?sort=fixed_size"
    text = client.get(url).content.decode()
    assert text.index("field 1 of 2, 0.0001 mm²") < text.index("field 2 of 2, 0.0001 mm²")
    assert "2 fields, 0.0002 mm²" in text


def test_csv_has_kind_field_and_sum_of_the_grid() -> None:
    fields = [made_roi(box(0, 0, 20, 20), properties=field(at)) for at in (1, 2)]
    plain = made_roi(box(0, 0, 20, 20), properties={"Grade": "2"})
    text = written("csv", *fields, plain).decode("utf-8-sig")
    first, _, last = csv.DictReader(io.StringIO(text))
    assert (first["fixed_size"], first["nominal_mm2"]) == ("field 1 of 2, 0.0001 mm²", "0.0001")
    assert (first["grid"], first["grid_fields"], first["grid_mm2"]) == ("a1b2c3d4", "2", "0.0002")
    assert (last["fixed_size"], last["grid_mm2"], last["property.Grade"]) == ("", "", "2")
    assert "property.Fixed size" not in first


@pytest.mark.django_db
def test_rest_reads_and_writes_sizes_and_geojson_carries_them(
    canvas: Canvas, annotator: User, grid: list[Roi]
) -> None:
    api = APIClient()
    api.force_login(annotator)
    body = {
        "canvas": str(canvas.pk),
        "geometry": box(0, 100, 20, 120),
        "properties": {"Fixed size": "square 0.0001 mm²"},
    }
    made = api.post("/api/v1/rois/", body, format="json").json()
    assert made["properties"] == body["properties"]
    carried = [
        {key: text for key, text in feature["properties"]["metadata"].items() if key in SIZE_KEYS}
        for feature in exported(canvas)["features"]
    ]
    assert sorted(carried, key=str) == sorted([field(1), field(2), body["properties"]], key=str)
