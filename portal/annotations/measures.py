"""Measures of an outline: the one place that names, computes and gives units to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from portal.annotations.marks import mark_kind, mark_measures

UM2_PER_MM2 = 1e6
_MIN_MM2_UM2 = 1e4


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of a table.

    Attributes:
        key: of programs; ends in its unit.
        title: for people, with the unit in brackets.
    """

    key: str
    title: str


MEASURES = (
    Measure("area_px", "Area [px²]"),
    Measure("area_um2", "Area [µm²]"),
    Measure("length_px", "Length [px]"),
    Measure("length_um", "Length [µm]"),
    Measure("points", "Points"),
    Measure("perimeter_px", "Perimeter [px]"),
    Measure("perimeter_um", "Perimeter [µm]"),
    Measure("width_px", "Width [px]"),
    Measure("height_px", "Height [px]"),
    Measure("feret_px", "Largest diameter [px]"),
    Measure("feret_um", "Largest diameter [µm]"),
    Measure("circularity", "Circularity"),
    Measure("solidity", "Solidity"),
    Measure("parts", "Parts"),
    Measure("holes", "Holes"),
)


def measures_of(
    geometry: Mapping[str, Any], *, mpp_x: float | None, mpp_y: float | None
) -> dict[str, float | int | None]:
    """Measures of a geometry by key; None without a scale, or if a measure does not apply.

    Lengths in microns are measured on the outline scaled by both sides, so pixels need not be
    square. Circularity is 4 pi area / perimeter^2 of outer and inner rings (1 for a circle);
    solidity the share of the convex hull that is filled. Lines have a length, points a number.
    """
    shape = shapely.geometry.shape(dict(geometry))
    parts = shapely.get_parts(shape)
    left, top, right, bottom = shape.bounds
    hull = shapely.convex_hull(shape)
    scaled = shapely.transform(shape, lambda xy: xy * [mpp_x, mpp_y]) if mpp_x and mpp_y else None
    values: dict[str, float | int | None] = {
        "width_px": round(right - left, 2),
        "height_px": round(bottom - top, 2),
        "feret_px": _feret(hull),
        "feret_um": None if scaled is None else _feret(shapely.convex_hull(scaled)),
        "parts": len(parts),
    }
    if mark_kind(geometry):
        values |= mark_measures(geometry, mpp_x=mpp_x, mpp_y=mpp_y)
    else:
        values |= {
            "area_px": round(shape.area, 4),
            "area_um2": None if scaled is None else round(scaled.area, 4),
            "perimeter_px": round(shape.length, 4),
            "perimeter_um": None if scaled is None else round(scaled.length, 4),
            "circularity": round(4 * math.pi * shape.area / shape.length**2, 4),
            "solidity": round(shape.area / hull.area, 4),
            "holes": int(sum(shapely.get_num_interior_rings(parts))),
        }
    return {measure.key: values.get(measure.key) for measure in MEASURES}


def area_unit(areas_um2: Iterable[float | None]) -> str:
    """Unit of all areas of a list: mm² if each has at least 0.01 mm², µm² otherwise."""
    return "mm²" if all(not area or area >= _MIN_MM2_UM2 for area in areas_um2) else "µm²"


def area_texts(areas_px: Sequence[float], *, mpp_x: float | None, mpp_y: float | None) -> list[str]:
    """Areas of regions of one image, in one unit, with three significant digits."""
    if not (mpp_x and mpp_y):
        return [_area_text(area, "px²") for area in areas_px]
    areas_um2 = [area * mpp_x * mpp_y for area in areas_px]
    unit = area_unit(areas_um2)
    scale = UM2_PER_MM2 if unit == "mm²" else 1.0
    return [_area_text(area / scale, unit) for area in areas_um2]


def _area_text(area: float, unit: str) -> str:
    return f"{float(f'{area:.3g}'):,.10g} {unit}"


def _feret(hull: Any) -> float:
    """The largest distance between two vertices of the hull, a few at a time."""
    points = shapely.get_coordinates(hull)
    longest = 0.0
    for start in range(0, len(points), 256):
        gaps = points[start : start + 256, None, :] - points[None, :, :]
        longest = max(longest, float(np.hypot(gaps[..., 0], gaps[..., 1]).max()))
    return round(longest, 4)
