"""Regions of a nominal area: circles, squares and fields of a grid.

Two properties of a region name its kind and its grid; the viewer writes the same texts
(``static/src/viewer/rois/shapes/fixed_size.ts``). They count only while the outline has that area.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FIXED_SIZE_KEY = "Fixed size"
GRID_KEY = "Field grid"
SIZE_KEYS = frozenset({FIXED_SIZE_KEY, GRID_KEY})
_MAX_AREA_ERROR = 0.005  # share by which measured and nominal area may differ
_TEXT = re.compile(
    r"(circle|square|field) (?:(\d{1,6}) of (\d{1,6}), )?(\d{1,9}(?:\.\d{1,9})?) mm²"
)


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Nominal size of a region.

    Attributes:
        text: "circle 2.37 mm²" or "field 3 of 10, 0.237 mm²".
        grid: Id of the grid of a field; empty for others.
    """

    text: str
    area_mm2: float
    grid: str


@dataclass(frozen=True, slots=True)
class GridSum:
    """Number of fields of a grid, and the sum of their nominal areas in mm²."""

    count: int
    area_mm2: float

    @property
    def text(self) -> str:
        """Number and sum: 10 fields, 2.37 mm²."""
        return f"{self.count} field{'' if self.count == 1 else 's'}, {self.area_mm2:g} mm²"


def fixed_size(
    properties: Mapping[str, str], *, area_px: float, mpp_x: float | None, mpp_y: float | None
) -> FixedSize | None:
    """The size that properties name; None if they name none, or the area is another one."""
    match = _TEXT.fullmatch(properties.get(FIXED_SIZE_KEY, ""))
    if match is None or not mpp_x or not mpp_y:
        return None
    nominal = float(match[4])
    if abs(area_px * mpp_x * mpp_y / 1e6 - nominal) > _MAX_AREA_ERROR * nominal:
        return None
    grid = properties.get(GRID_KEY, "") if match[1] == "field" else ""
    return FixedSize(match[0], nominal, grid)


def grid_sums(sizes: Iterable[FixedSize | None]) -> dict[str, GridSum]:
    """Sums by the id of the grid, in the order in which grids first appear."""
    by_grid: dict[str, list[float]] = {}
    for size in sizes:
        if size is not None and size.grid:
            by_grid.setdefault(size.grid, []).append(size.area_mm2)
    return {grid: GridSum(len(areas), math.fsum(areas)) for grid, areas in by_grid.items()}
