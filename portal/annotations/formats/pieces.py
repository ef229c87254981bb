"""Outlines for formats whose polygons are single rings, and outlines of masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import Polygon
from shapely.geometry.base import BaseGeometry

from portal.annotations.geometry import DECIMALS, GeoJsonGeometry
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import RoiKind
from portal.annotations.qupath import FeatureError

MAX_RUNS = 200_000  # of one mask: beyond, an outline would have more vertices than an ROI may


def single_rings(geometry: Mapping[str, Any]) -> list[list[list[float]]]:
    """Rings, not closed, that cover the outline together without overlapping.

    A polygon with holes is cut along a vertical line through each of them.
    """
    shape = shapely.geometry.shape(dict(geometry))
    parts = [part for part in shapely.get_parts(shape) if isinstance(part, Polygon)]
    return [_open(piece) for part in parts for piece in _split_holes(part)]


def pieces_of(geometry: Mapping[str, Any]) -> list[list[list[float]]]:
    """Vertices of each piece, for formats without parts: rings of areas, lines, all points."""
    kind = mark_kind(geometry)
    if kind is None:
        return single_rings(geometry)
    parts = mark_parts(geometry)
    return parts if kind == RoiKind.LINE else [[point for part in parts for point in part]]


def _split_holes(polygon: Polygon) -> list[Polygon]:
    if not polygon.interiors:
        return [polygon]
    cuts = sorted({round((r.bounds[0] + r.bounds[2]) / 2, DECIMALS) for r in polygon.interiors})
    left, top, right, bottom = polygon.bounds
    edges = [left, *[cut for cut in cuts if left < cut < right], right]
    strips = [shapely.box(a, top, b, bottom) for a, b in pairwise(edges)]
    strip_parts = shapely.get_parts(shapely.intersection(polygon, strips))
    pieces: list[Polygon] = []
    for piece in strip_parts:
        if isinstance(piece, Polygon) and not piece.is_empty:
            pieces += [piece] if not piece.interiors else _split_holes(piece)
    return pieces


def _open(polygon: Polygon) -> list[list[float]]:
    ring = np.round(shapely.get_coordinates(polygon.exterior)[:-1], DECIMALS) + 0.0
    values: list[list[float]] = ring.tolist()
    return values


def closed(ring: list[list[float]]) -> list[list[float]]:
    """A ring of a format whose rings are not closed, as GeoJSON has it."""
    return ring if len(ring) < 3 or ring[0] == ring[-1] else [*ring, ring[0]]


def united(polygons: Sequence[Any]) -> GeoJsonGeometry:
    """An outline of rings that are to be taken together, as a GeoJSON geometry.

    Args:
        polygons: rings, each a list of pairs.
    """
    if len(polygons) == 1:
        return {"type": "Polygon", "coordinates": [polygons[0]]}
    try:
        parts = [shapely.make_valid(Polygon(ring)) for ring in polygons]
    except (ValueError, TypeError):
        # Not numbers, or too few: the check of outlines says which vertex it is.
        return {"type": "MultiPolygon", "coordinates": [[ring] for ring in polygons]}
    return geometry_of(shapely.union_all(parts))


def geometry_of(shape: BaseGeometry) -> GeoJsonGeometry:
    """GeoJSON geometry of the areas of an outline."""
    parts = [p for p in shapely.get_parts(shape) if isinstance(p, Polygon) and not p.is_empty]
    rings = [
        [shapely.get_coordinates(ring).tolist() for ring in (part.exterior, *part.interiors)]
        for part in parts
    ]
    return {"type": "MultiPolygon", "coordinates": rings}


def runs_outline(
    runs: npt.NDArray[np.int64], *, line_px: int, is_by_column: bool, left: float, top: float
) -> GeoJsonGeometry:
    """The outline of a mask along the edges of its pixels; the mask itself is never made.

    Args:
        runs: (N,) lengths, outside and inside in turns, beginning outside.
        line_px: pixels in a line of the mask (its height where ``is_by_column``).
        left, top: of the mask on the canvas.
    Raises:
        FeatureError: too many runs.
    """
    if len(runs) > MAX_RUNS:
        raise FeatureError(f"a mask of {len(runs):,} runs; {MAX_RUNS:,} are read")
    ends = np.cumsum(runs)
    starts = ends - runs
    first, last = starts[1::2], ends[1::2]
    is_there = last > first
    boxes = _boxes(first[is_there], last[is_there], line_px)
    if is_by_column:
        boxes = boxes[:, [1, 0, 3, 2]]
    if not len(boxes):
        raise FeatureError("its mask is empty")
    x0, y0, x1, y1 = (boxes + np.array([left, top, left, top])).T
    merged = shapely.union_all(shapely.box(x0, y0, x1, y1))
    return geometry_of(shapely.simplify(merged, 0.0))


def _boxes(
    first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], line_px: int
) -> npt.NDArray[np.float64]:
    """(M, 4) left, top, right, bottom of runs in lines: a run over several lines is up to three."""
    boxes: list[tuple[int, int, int, int]] = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        row, column = divmod(a, line_px)
        end_row, end_column = divmod(b, line_px)
        if row == end_row:
            boxes.append((column, row, end_column, row + 1))
            continue
        if column:
            boxes.append((column, row, line_px, row + 1))
            row += 1
        if end_row > row:
            boxes.append((0, row, line_px, end_row))
        if end_column:
            boxes.append((0, end_row, end_column, end_row + 1))
    return np.array(boxes, np.float64).reshape(-1, 4)
