"""Outlines: what is repaired, what is refused, and that storing is a fixed point."""

from __future__ import annotations

import math
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import shape

from portal.annotations.geometry import (
    MAX_VERTICES,
    InvalidRoiGeometryError,
    area_um2,
    shape_from_geojson,
)

RING = [[0, 0], [9, 0], [9, 9], [0, 0]]


def _polygon(*ring: tuple[Any, Any]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[list(vertex) for vertex in ring]]}


def _box(left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
    return _polygon((left, top), (right, top), (right, bottom), (left, bottom), (left, top))


def _stored(geometry: object) -> Any:
    return shape_from_geojson(geometry, width_px=1000, height_px=800)


def test_a_rectangle_has_vertices_bounds_centroid_and_area() -> None:
    stored = _stored(_box(10, 20, 110, 70))
    assert stored.geometry == _box(10, 20, 110, 70)
    assert stored.bounds == (10, 20, 110, 70)
    assert stored.centroid == (60, 45)
    assert stored.area_px == 5000
    assert stored.notes == ()


def test_an_open_ring_is_closed_without_reordering() -> None:
    clockwise = [(10, 20), (10, 70), (110, 70), (110, 20)]
    for ring in (clockwise, clockwise[::-1]):
        stored = _stored(_polygon(*ring)).geometry["coordinates"][0]
        assert stored == [list(vertex) for vertex in (*ring, ring[0])]


def test_repaired_rings_have_one_orientation() -> None:
    clipped = _stored(_polygon((-10, 20), (-10, 70), (110, 70), (110, 20)))
    twisted = _stored(_polygon((0, 0), (10, 10), (10, 0), (0, 10)))
    parts = [clipped.geometry["coordinates"], *twisted.geometry["coordinates"]]
    assert all(shapely.LinearRing(rings[0]).is_ccw for rings in parts)


def test_a_bow_tie_becomes_its_two_triangles() -> None:
    stored = _stored(_polygon((0, 0), (10, 10), (10, 0), (0, 10)))
    assert stored.geometry["type"] == "MultiPolygon"
    assert stored.area_px == 50
    assert stored.notes == ("open ring closed", "repaired: self-intersection")


def test_overlapping_parts_are_united_instead_of_cutting_a_hole() -> None:
    parts = [_box(0, 0, 10, 10)["coordinates"], _box(5, 5, 15, 15)["coordinates"]]
    stored = _stored({"type": "MultiPolygon", "coordinates": parts})
    assert stored.area_px == 175


def test_a_hole_stays_a_hole() -> None:
    outer, inner = _box(0, 0, 100, 100)["coordinates"][0], _box(20, 20, 60, 60)["coordinates"][0]
    stored = _stored({"type": "Polygon", "coordinates": [outer, inner]})
    assert stored.area_px == 100 * 100 - 40 * 40


def test_an_outline_beyond_the_canvas_is_clipped() -> None:
    stored = _stored(_box(-50, -50, 100, 100))
    assert stored.bounds == (0, 0, 100, 100)
    assert stored.notes == ("clipped to the canvas",)


def test_an_outline_outside_the_canvas_is_refused() -> None:
    with pytest.raises(InvalidRoiGeometryError, match="1000 x 800") as error:
        _stored(_box(2000, 2000, 2100, 2100))
    assert error.value.code == "outside-canvas"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_naming_its_vertex(value: float) -> None:
    with pytest.raises(InvalidRoiGeometryError, match="vertex 3: y "):
        _stored(_polygon((0, 0), (10, 0), (10, value), (0, 10)))


@pytest.mark.parametrize("value", ["NaN", None, True, [], {}])
def test_a_non_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidRoiGeometryError, match="vertex 2"):
        _stored(_polygon((0, 0), (value, 0), (10, 10)))


def test_200_000_vertices_are_refused_with_count_and_limit() -> None:
    ring = [
        (500 + 300 * math.cos(2 * math.pi * i / 200_000), 400 + 300 * math.sin(i / 31_831))
        for i in range(200_000)
    ]
    with pytest.raises(InvalidRoiGeometryError, match=r"200,000 vertices.*100,000"):
        _stored(_polygon(*ring))


def test_as_many_vertices_as_allowed_are_accepted() -> None:
    count = MAX_VERTICES - 1
    ring = [
        (
            500 + 390 * math.cos(2 * math.pi * i / count),
            400 + 390 * math.sin(2 * math.pi * i / count),
        )
        for i in range(count)
    ]
    assert _stored(_polygon(*ring)).area_px == pytest.approx(math.pi * 390**2, rel=1e-4)


def test_a_scribble_that_would_take_minutes_to_repair_is_refused() -> None:
    ring = [(500 + 400 * math.sin(i * 2.4), 400 + 390 * math.cos(i * 1.7)) for i in range(20_000)]
    with pytest.raises(InvalidRoiGeometryError, match="crosses"):
        _stored(_polygon(*ring))


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        (None, "expected a GeoJSON object"),
        ([], "expected a GeoJSON object"),
        ({"type": "Point", "coordinates": [1, 2]}, "not 'Point'"),
        ({"type": "GeometryCollection", "geometries": []}, "not 'GeometryCollection'"),
        ({"type": "Polygon", "coordinates": []}, "expected a list of rings"),
        ({"type": "MultiPolygon", "coordinates": []}, "needs coordinates"),
        ({"type": "MultiPolygon", "coordinates": {}}, "needs coordinates"),
        ({"type": "Polygon", "coordinates": [7]}, "the outline is not a list"),
        ({"type": "Polygon", "coordinates": [[7]]}, "vertex 1 is not a pair"),
        ({"type": "MultiPolygon", "coordinates": [7]}, "part 1, expected a list of rings"),
        (
            {"type": "MultiPolygon", "coordinates": [[RING], [RING, RING, [[7]]]]},
            "part 2, hole 2, vertex 1 is not a pair",
        ),
        (_polygon((0, 0), (5, 5)), "fewer than 3 different vertices"),
        (_polygon((0, 0), (5, 5), (10, 10)), "no area"),
        (_polygon((0, 0), (0.5, 0), (0.5, 0.5)), "no area"),
        (_polygon((0, 0), (10**400, 0), (5, 5)), "x is beyond"),
    ],
)
def test_nonsense_is_refused_with_its_reason(geometry: object, words: str) -> None:
    with pytest.raises(InvalidRoiGeometryError, match=words):
        _stored(geometry)


def test_a_third_coordinate_is_dropped() -> None:
    stored = _stored(
        {"type": "Polygon", "coordinates": [[[0, 0, 5], [9, 0, 5], [9, 9, 5], [0, 9]]]}
    )
    assert all(len(vertex) == 2 for vertex in stored.geometry["coordinates"][0])


def test_area_in_um_needs_a_scale() -> None:
    assert area_um2(100, 0.5, 0.25) == 12.5
    assert area_um2(100, None, None) is None


_number = st.floats(-200, 1200, allow_nan=False)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_number, _number), min_size=3, max_size=12))
def test_a_stored_outline_is_valid_clipped_rounded_and_stable(
    ring: list[tuple[float, float]],
) -> None:
    try:
        result = _stored(_polygon(*ring))
    except InvalidRoiGeometryError:
        return
    stored = shape(result.geometry)
    assert stored.is_valid
    left, top, right, bottom = stored.bounds
    assert 0 <= left < right <= 1000
    assert 0 <= top < bottom <= 800
    assert result.area_px >= 1
    for x, y in shapely.get_coordinates(stored).tolist():
        assert (round(x, 2), round(y, 2)) == (x, y)
    again = _stored(result.geometry)
    assert (again.geometry, again.notes) == (result.geometry, ())


@pytest.mark.parametrize("bad", [True, "3", None, math.nan, math.inf, 10**400, 1e12, [1], {"x": 1}])
def test_a_non_number_among_pairs_is_refused_with_its_index(bad: object) -> None:
    ring = [[10, 10], [90.5, 10], [90, 80], [bad, 20], [10, 10]]
    with pytest.raises(InvalidRoiGeometryError, match="vertex 4"):
        shape_from_geojson({"type": "Polygon", "coordinates": [ring]}, width_px=100, height_px=100)
