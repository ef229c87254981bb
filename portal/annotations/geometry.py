"""Outlines of ROIs: GeoJSON in, a valid polygon or multipolygon in level-0 pixels out.

What comes from a browser or another tool may be open, twisted, partly outside or nonsense. It is
repaired where the intent is clear and refused with a reason where it is not; what is stored is
always finite, valid, inside its canvas, closed and rounded to two decimals. Its vertices keep their
order, so that a file goes out as it came; where they had to be made again, outer rings turn
counter-clockwise in the x, y plane. Storing it again changes nothing.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import MultiPolygon, Polygon
from shapely.geometry.base import BaseGeometry
from shapely.geometry.polygon import orient

from portal.core.errors import InvalidInputError
from portal.core.serialized import SerializedDict

MAX_VERTICES = 100_000  # a vertex at every second pixel of a circle 60,000 px wide
MAX_RINGS = 10_000  # holes included: an outline with more is a mask, not a drawing
MIN_AREA_PX = 1.0  # smaller areas are clicks, not regions
ELLIPSE_TOLERANCE = 0.03  # of radius and area; 20 vertices have 1.6 % less area
DECIMALS = 2  # as in QuPath; finer than the pixels of any scanner
MAX_COORDINATE = 1e9  # far beyond any slide, and areas stay finite
_CROSSING_CANDIDATES_PER_VERTEX = 50  # beyond it a repair would take minutes
_CHUNK = 200  # segments queried at once, so that a hopeless outline is noticed early

Ring = npt.NDArray[np.float64]


class GeoJsonGeometry(TypedDict):
    """A geometry of GeoJSON in level-0 pixels, as an ROI keeps it and documents bring it.

    Attributes:
        type: ``Polygon``, ``MultiPolygon``, or of ``marks`` one for points or lines.
        coordinates: lists as deep as the type wants; from a document, unchecked.
    """

    type: str
    coordinates: list[Any]


class InvalidRoiGeometryError(InvalidInputError):
    """The outline cannot be an ROI; the message says why."""

    code = "invalid-geometry"


@dataclass(frozen=True, slots=True)
class RoiShape:
    """A geometry fit to be stored, and what follows from it.

    Attributes:
        geometry: GeoJSON ``Polygon`` or ``MultiPolygon``; of ``marks`` points and lines.
        bounds: left, top, right, bottom.
        centroid: x, y of the centre of mass.
        notes: what was changed, in words: ``repaired: ...``, ``clipped to the canvas``.
    """

    geometry: SerializedDict
    bounds: tuple[float, float, float, float]
    centroid: tuple[float, float]
    area_px: float
    notes: tuple[str, ...] = ()


def shape_from_geojson(geometry: object, *, width_px: int, height_px: int) -> RoiShape:
    """Check, repair, clip and round an outline.

    Args:
        geometry: a parsed GeoJSON geometry object, level-0 pixels, y down.
        width_px, height_px: size of the canvas.

    Raises:
        InvalidRoiGeometryError: not a finite polygon or multipolygon, too many vertices, rings or
            crossings, outside the canvas, or without area.
    """
    notes: list[str] = []
    shape: BaseGeometry = _read(geometry, notes)
    if not shape.is_valid:
        notes.append(f"repaired: {shapely.is_valid_reason(shape).split('[')[0].lower()}")
        _refuse_hopeless(shape)
        # "structure" unites parts that overlap; "linework" would cut a hole where they do.
        valid = shapely.make_valid(shape, method="structure", keep_collapsed=False)
        shape = _polygons_of(valid)
        _refuse_without_area(shape)
    shape = _clip(shape, width_px, height_px, notes)
    shape = _round(shape)
    _refuse_without_area(shape)
    return _describe(shape, tuple(notes))


def is_ellipse(shape: RoiShape) -> bool:
    """Return whether the vertices lie on the ellipse that fills the bounds, all around it."""
    rings = shape.geometry["coordinates"]
    if shape.geometry["type"] != "Polygon" or len(rings) != 1:
        return False
    left, top, right, bottom = shape.bounds
    radii = np.array([right - left, bottom - top]) / 2
    offsets = (np.array(rings[0]) - [(left + right) / 2, (top + bottom) / 2]) / radii
    is_on_it = np.abs(np.hypot(*offsets.T) - 1).max() <= ELLIPSE_TOLERANCE
    return bool(is_on_it) and shape.area_px >= (1 - ELLIPSE_TOLERANCE) * math.pi * radii.prod()


def polygons_of(geometry: Mapping[str, Any]) -> list[list[list[list[float]]]]:
    """The rings of each polygon of an outline, the outer one first."""
    coordinates: list[Any] = geometry["coordinates"]
    return [coordinates] if geometry["type"] == "Polygon" else coordinates


def area_um2(area_px: float, mpp_x: float | None, mpp_y: float | None) -> float | None:
    """The area in square microns, or None if the canvas' scale is unknown."""
    if mpp_x is None or mpp_y is None:
        return None
    return round(area_px * mpp_x * mpp_y, 4)


def _read(geometry: object, notes: list[str]) -> Polygon | MultiPolygon:
    """Parse GeoJSON without trusting it: types, counts, finite numbers."""
    if not isinstance(geometry, Mapping):
        raise InvalidRoiGeometryError(
            "geometry: expected a GeoJSON object with type and coordinates."
        )
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise InvalidRoiGeometryError(
            f"geometry: a region is a polygon, points or lines, not {brief(kind)}."
        )
    polygons = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(polygons, list) or not polygons:
        raise InvalidRoiGeometryError(f"geometry: a {kind} needs coordinates; there are none.")
    _refuse_too_many(polygons)
    if kind == "Polygon":
        return _polygon(coordinates, "", notes)
    return MultiPolygon(
        [_polygon(rings, f"part {i}, ", notes) for i, rings in enumerate(polygons, start=1)]
    )


def _refuse_too_many(polygons: list[Any]) -> None:
    rings = [ring for part in polygons if isinstance(part, list) for ring in part]
    refuse_vertices(sum(len(ring) for ring in rings if isinstance(ring, list)))
    if len(rings) > MAX_RINGS:
        raise InvalidRoiGeometryError(
            f"geometry: {len(rings):,} rings; a region may have {MAX_RINGS:,}.",
            details={"rings": len(rings), "limit": MAX_RINGS},
        )


def refuse_vertices(count: int) -> None:
    """Raise ``InvalidRoiGeometryError`` for more vertices than an ROI may have."""
    if count > MAX_VERTICES:
        raise InvalidRoiGeometryError(
            f"geometry: {count:,} vertices; a region may have {MAX_VERTICES:,}. Simplify it.",
            details={"vertices": count, "limit": MAX_VERTICES},
        )


def _polygon(rings: object, where: str, notes: list[str]) -> Polygon:
    """Messages name a ring and count from one as people do, not by its place in the document."""
    if not isinstance(rings, list) or not rings:
        raise InvalidRoiGeometryError(f"geometry: {where}expected a list of rings, found none.")
    names = ["the outline", *(f"hole {i}" for i in range(1, len(rings)))]
    arrays = [_ring(ring, where + name, notes) for name, ring in zip(names, rings, strict=True)]
    return Polygon(arrays[0], arrays[1:])


def _ring(ring: object, where: str, notes: list[str]) -> Ring:
    """A ring as (N, 2) float64, closed."""
    if not isinstance(ring, list):
        raise InvalidRoiGeometryError(f"geometry: {where} is not a list of vertices.")
    values = _plain_pairs(ring)
    if values is None:
        values = np.array([vertex(v, f"{where}, vertex {i}") for i, v in enumerate(ring, start=1)])
        if any(len(vertex) > 2 for vertex in ring):
            note(notes, "Z coordinates left out")
    if not _has_three(values):
        raise InvalidRoiGeometryError(
            f"geometry: {where} has fewer than 3 different vertices: it encloses no area."
        )
    if not np.array_equal(values[0], values[-1]):
        values = np.vstack([values, values[:1]])
        note(notes, "open ring closed")
    return values


def _plain_pairs(ring: list[Any]) -> Ring | None:
    """The vertices where all are pairs of finite numbers; a hundred thousand are checked at once.

    None if ``vertex`` has to say which one is not.
    """
    if not {*map(type, ring)} <= {list, tuple} or {*map(len, ring)} != {2}:
        return None
    if not {*map(type, chain.from_iterable(ring))} <= {int, float}:
        return None
    try:
        values = np.array(ring, dtype=np.float64)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return values if (np.abs(values) <= MAX_COORDINATE).all() else None  # not NaN either


def _has_three(values: Ring) -> bool:
    """Return whether three of the vertices differ."""
    points = values[(values != values[:1]).any(axis=1)] if len(values) else values
    return bool(len(points)) and bool((points != points[:1]).any())


def brief(value: object) -> str:
    """Short text of a document's value for messages; deep nesting cannot exhaust the stack."""
    return reprlib.repr(value)


def note(notes: list[str], text: str) -> None:
    """Add a note, once."""
    if text not in notes:
        notes.append(text)


def vertex(pair: object, where: str) -> tuple[float, float]:
    """x and y of a GeoJSON position; ``InvalidRoiGeometryError``, with ``where``, if it is none."""
    if not isinstance(pair, list | tuple) or len(pair) < 2:
        raise InvalidRoiGeometryError(f"geometry: {where} is not a pair of numbers.")
    return _number(pair[0], where, "x"), _number(pair[1], where, "y")


def _number(value: object, where: str, axis: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRoiGeometryError(f"geometry: {where}: {axis} is {brief(value)}, not a number.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRoiGeometryError(f"geometry: {where}: {axis} is {value}, not a finite number.")
    if abs(value) > MAX_COORDINATE:
        raise InvalidRoiGeometryError(f"geometry: {where}: {axis} is beyond {MAX_COORDINATE:,.0f}.")
    return float(value)


def _refuse_hopeless(shape: BaseGeometry) -> None:
    """Refuse scribbles whose segments cross in millions of places, before repairing them hangs."""
    coordinates = shapely.get_coordinates(shape)
    budget = _CROSSING_CANDIDATES_PER_VERTEX * len(coordinates) + 100_000
    pairs = np.stack([coordinates[:-1], coordinates[1:]], axis=1)
    segments: npt.NDArray[Any] = np.atleast_1d(np.asarray(shapely.linestrings(pairs)))
    tree = shapely.STRtree(segments)
    pair_count = 0
    for start in range(0, len(segments), _CHUNK):
        pair_count += tree.query(segments[start : start + _CHUNK]).shape[1]
        if pair_count > budget:
            raise InvalidRoiGeometryError(
                "geometry: the outline crosses itself too often to be repaired. Draw it again."
            )


def _polygons_of(shape: BaseGeometry) -> Polygon | MultiPolygon:
    """The polygonal parts, turning one way: a repair may leave lines and points behind."""
    if not isinstance(shape, Polygon | MultiPolygon):
        shape = shapely.union_all([part for part in _flat(shape) if isinstance(part, Polygon)])
    if isinstance(shape, Polygon):
        return orient(shape, 1.0)
    return MultiPolygon([orient(polygon, 1.0) for polygon in getattr(shape, "geoms", [])])


def _flat(shape: BaseGeometry) -> Iterable[BaseGeometry]:
    for part in getattr(shape, "geoms", [shape]):
        if hasattr(part, "geoms"):
            yield from _flat(part)
        else:
            yield part


def _clip(shape: BaseGeometry, width_px: int, height_px: int, notes: list[str]) -> BaseGeometry:
    left, top, right, bottom = shape.bounds
    if left >= 0 and top >= 0 and right <= width_px and bottom <= height_px:
        return shape
    clipped = _polygons_of(shapely.intersection(shape, shapely.box(0, 0, width_px, height_px)))
    if clipped.is_empty or clipped.area < min(MIN_AREA_PX, shape.area):
        raise InvalidRoiGeometryError(
            f"geometry: the outline lies outside the canvas of {width_px} x {height_px} pixels.",
            code="outside-canvas",
        )
    notes.append("clipped to the canvas")
    return clipped


def _round(shape: BaseGeometry) -> BaseGeometry:
    """Two decimals. Rounding may fold thin parts over; then the precision model repairs them."""
    rounded = shapely.transform(shape, lambda xy: np.round(xy, DECIMALS))
    if rounded.is_valid:
        return rounded
    snapped = _polygons_of(shapely.set_precision(shape, 10**-DECIMALS))
    return shapely.transform(snapped, lambda xy: np.round(xy, DECIMALS))


def _refuse_without_area(shape: BaseGeometry) -> None:
    if shape.is_empty or shape.area < MIN_AREA_PX:
        raise InvalidRoiGeometryError(
            "geometry: the outline has no area: it encloses less than one pixel.", code="no-area"
        )


def _describe(shape: BaseGeometry, notes: tuple[str, ...]) -> RoiShape:
    polygons = list(shape.geoms) if isinstance(shape, MultiPolygon) else [shape]
    areas = [part for part in polygons if isinstance(part, Polygon) and not part.is_empty]
    rings = [[_tuples(part.exterior), *map(_tuples, part.interiors)] for part in areas]
    geometry = (
        SerializedDict(type="Polygon", coordinates=rings[0])
        if len(rings) == 1
        else SerializedDict(type="MultiPolygon", coordinates=rings)
    )
    left, top, right, bottom = shape.bounds
    return RoiShape(
        geometry=geometry,
        bounds=(left, top, right, bottom),
        centroid=(round(shape.centroid.x, DECIMALS), round(shape.centroid.y, DECIMALS)),
        area_px=round(shape.area, 4),
        notes=notes,
    )


def _tuples(ring: BaseGeometry) -> list[list[float]]:
    plain: list[list[float]] = (shapely.get_coordinates(ring) + 0.0).tolist()  # no "-0.0"
    return plain
