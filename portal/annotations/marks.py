"""Points and lines: GeoJSON in, finite coordinates on the canvas out. They have no area.

Like outlines (``portal.annotations.geometry``), stored coordinates are rounded to two decimals and
within the canvas; storing them again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely
from shapely.geometry import LineString, MultiLineString, MultiPoint
from shapely.geometry.base import BaseGeometry

from portal.annotations.geometry import (
    DECIMALS,
    MAX_RINGS,
    InvalidRoiGeometryError,
    RoiShape,
    note,
    polygons_of,
    refuse_vertices,
    shape_from_geojson,
    vertex,
)
from portal.annotations.models import RoiKind
from portal.core.serialized import SerializedDict

MARKS = (RoiKind.POINT.value, RoiKind.LINE.value)
"""Kinds without an area: they are measured and exchanged, never embedded."""
_KINDS = {
    "Point": RoiKind.POINT,
    "MultiPoint": RoiKind.POINT,
    "LineString": RoiKind.LINE,
    "MultiLineString": RoiKind.LINE,
}


def mark_kind(geometry: object) -> str | None:
    """``point`` or ``line`` by the type of a GeoJSON geometry; None for anything else."""
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    mark = _KINDS.get(kind) if isinstance(kind, str) else None
    return mark.value if mark else None


def outline_from_geojson(geometry: object, *, width_px: int, height_px: int) -> RoiShape:
    """Check any geometry that an ROI may have: an area, points or lines.

    Args:
        geometry: a parsed GeoJSON geometry object, level-0 pixels, y down.
        width_px, height_px: size of the canvas.

    Raises:
        InvalidRoiGeometryError: see ``shape_from_geojson``; a line without length.
    """
    if mark_kind(geometry) is None or not isinstance(geometry, Mapping):
        return shape_from_geojson(geometry, width_px=width_px, height_px=height_px)
    notes: list[str] = []
    if mark_kind(geometry) == RoiKind.POINT:
        shape = _points(geometry, notes)
    else:
        shape = _lines(geometry, notes)
    canvas = shapely.box(0, 0, width_px, height_px)
    if not canvas.covers(shape):
        shape = _parts_of_kind(shapely.intersection(shape, canvas), shape)
        if shape.is_empty:
            raise InvalidRoiGeometryError(
                f"geometry: it lies outside the canvas of {width_px} x {height_px} pixels.",
                code="outside-canvas",
            )
        notes.append("clipped to the canvas")
    return _describe(shape, tuple(notes))


def _points(geometry: Mapping[str, Any], notes: list[str]) -> BaseGeometry:
    coordinates = geometry.get("coordinates")
    points = [coordinates] if geometry["type"] == "Point" else coordinates
    if not isinstance(points, list) or not points:
        raise InvalidRoiGeometryError(f"geometry: a {geometry['type']} needs coordinates.")
    refuse_vertices(len(points))
    return MultiPoint(_vertices(points, "point", notes))


def _lines(geometry: Mapping[str, Any], notes: list[str]) -> BaseGeometry:
    coordinates = geometry.get("coordinates")
    lines = [coordinates] if geometry["type"] == "LineString" else coordinates
    if not isinstance(lines, list) or not lines or not all(isinstance(x, list) for x in lines):
        raise InvalidRoiGeometryError(f"geometry: a {geometry['type']} needs coordinates.")
    if len(lines) > MAX_RINGS:
        raise InvalidRoiGeometryError(
            f"geometry: {len(lines):,} lines; a region may have {MAX_RINGS:,}."
        )
    refuse_vertices(sum(map(len, lines)))
    parts = [_line(line, f"line {number}", notes) for number, line in enumerate(lines, start=1)]
    return shapely.multilinestrings(parts)


def _line(line: list[Any], where: str, notes: list[str]) -> LineString:
    vertices = _vertices(line, f"{where}, vertex", notes)
    if len(np.unique(vertices, axis=0)) < 2:
        raise InvalidRoiGeometryError(
            f"geometry: {where} has fewer than 2 different vertices: it has no length.",
            code="no-length",
        )
    return LineString(vertices)


def _vertices(points: list[Any], where: str, notes: list[str]) -> np.ndarray[Any, Any]:
    """(N, 2) float64, rounded as they are stored."""
    vertices = np.array([vertex(point, f"{where} {i}") for i, point in enumerate(points, start=1)])
    if any(len(point) > 2 for point in points):
        note(notes, "Z coordinates left out")
    rounded: np.ndarray[Any, Any] = np.round(vertices.reshape(-1, 2), DECIMALS)
    return rounded


def _parts_of_kind(geometry: BaseGeometry, original: BaseGeometry) -> BaseGeometry:
    """Keep the parts of the original kind: clipping a line at the edge may yield points."""
    is_points = original.geom_type == "MultiPoint"
    parts = [
        part
        for part in shapely.get_parts(geometry)
        if (part.geom_type == "Point") == is_points and not part.is_empty
    ]
    rounded: Any = shapely.transform(parts, lambda xy: np.round(xy, DECIMALS)) if parts else []
    if is_points:
        return MultiPoint(list(rounded))
    return MultiLineString([line for line in rounded if line.length > 0])


def _describe(shape: BaseGeometry, notes: tuple[str, ...]) -> RoiShape:
    parts = [(shapely.get_coordinates(part) + 0.0).tolist() for part in shapely.get_parts(shape)]
    is_points = shape.geom_type == "MultiPoint"
    coordinates: list[Any] = [point for part in parts for point in part] if is_points else parts
    kind = "Point" if is_points else "LineString"
    is_one = len(coordinates) == 1
    left, top, right, bottom = shape.bounds
    return RoiShape(
        geometry=SerializedDict(
            type=kind if is_one else f"Multi{kind}",
            coordinates=coordinates[0] if is_one else coordinates,
        ),
        bounds=(left, top, right, bottom),
        centroid=(round(shape.centroid.x, DECIMALS), round(shape.centroid.y, DECIMALS)),
        area_px=0.0,
        notes=notes,
    )


def mark_measures(
    geometry: Mapping[str, Any] | None, *, mpp_x: float | None, mpp_y: float | None
) -> dict[str, float | int | None]:
    """``length_px`` and ``length_um`` of lines, ``points`` of points; None for all else."""
    measures: dict[str, float | int | None] = {"length_px": None, "length_um": None, "points": None}
    kind = mark_kind(geometry)
    if geometry is None or kind is None:
        return measures
    parts = mark_parts(geometry)
    if kind == RoiKind.POINT:
        return measures | {"points": len(parts)}
    steps = np.vstack([np.diff(np.array(line, np.float64), axis=0) for line in parts])
    measures["length_px"] = round(float(np.hypot(*steps.T).sum()), 4)
    if mpp_x and mpp_y:
        measures["length_um"] = round(float(np.hypot(*(steps * [mpp_x, mpp_y]).T).sum()), 4)
    return measures


def mark_parts(geometry: Mapping[str, Any]) -> list[list[list[float]]]:
    """Vertices of each line; a point is a list of one vertex."""
    coordinates: list[Any] = geometry["coordinates"]
    if geometry["type"] == "Point":
        return [[coordinates]]
    if geometry["type"] == "MultiPoint":
        return [[point] for point in coordinates]
    return [coordinates] if geometry["type"] == "LineString" else coordinates


def rings_of(geometry: Mapping[str, Any]) -> list[list[list[float]]]:
    """Vertex lists to draw: rings of areas, lines, single points."""
    if mark_kind(geometry):
        return mark_parts(geometry)
    return [ring for polygon in polygons_of(geometry) for ring in polygon]
