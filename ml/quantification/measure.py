"""Measure a region tile by tile: memory is bounded, and a nucleus on a border counts once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Protocol

import cv2
import numpy as np
import shapely
from shapely.geometry import Polygon, box
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, TooLargeError
from ml.imaging.tissue.glass import HAZE_REACH_PX, pixel_haze
from ml.quantification.config import (
    MAX_AREA_MM2,
    MAX_NUCLEUS_MPP,
    QuantificationConfig,
    Staining,
)
from ml.quantification.nuclei import REACH_UM, find_nuclei
from ml.quantification.result import NucleusTable, Quantification
from ml.quantification.stains import WHITE, channel_densities, stain_names, unmixed
from ml.roi.geometry import Region, checked_region
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8, Progress, no_progress

TILE_PX = 1024
_SUBPIXEL_BITS = 4  # of a vertex, when an outline is filled
TOO_COARSE = "too-coarse"


class UnknownPixelSizeError(BadInputError):
    """The size of the pixels is unknown, so nothing can be measured in microns."""

    code = "unknown-pixel-size"


class PixelSource(Protocol):
    """An image that is read by rectangles, as ``SlideImage``."""

    def read_region(
        self,
        xy_l0: tuple[float, float],
        size_l0: tuple[float, float],
        out_px: tuple[int, int],
    ) -> ImageU8:
        """(out height, out width, 3) uint8 RGB, white outside the image."""
        ...


@dataclass(frozen=True, slots=True)
class Grid:
    """The pixels that are measured: as many microns in x as in y, from the corner of level 0.

    Attributes:
        mpp: Microns per pixel.
        step_l0: Level-0 pixels per pixel, in x and y.
    """

    mpp: float
    step_l0: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of pixels of the grid: corner, width and height."""

    x: int
    y: int
    width: int
    height: int

    @property
    def box(self) -> Polygon:
        """The rectangle as a polygon."""
        return box(self.x, self.y, self.x + self.width, self.y + self.height)


@dataclass(slots=True)
class _Sums:
    """Sums over the tiles so far."""

    inside: int = 0
    tissue: int = 0
    positive: int = 0
    density: ArrayF64 = field(default_factory=lambda: np.zeros(2))
    nuclei: list[NucleusTable] = field(default_factory=list)


def quantify_region(
    slide: PixelSource,
    polygon_l0: BaseGeometry | None,
    *,
    size_l0: tuple[int, int],
    mpp: tuple[float | None, float | None],
    config: QuantificationConfig | None = None,
    progress: Progress = no_progress,
    tile_px: int = TILE_PX,
) -> Quantification:
    """Measure nuclei, stained area and stain means of a region.

    Args:
        slide: Open slide or still of a section.
        polygon_l0: Outline in level-0 pixels; None for the whole image.
        size_l0: Width and height of level 0.
        mpp: Microns per level-0 pixel in x and y. Above ``MAX_NUCLEUS_MPP`` nuclei are not
            counted, and the rest is measured at level 0.
        progress: Called after each tile; may raise ``CancelledError``.
        tile_px: Side of a tile without its overlap. The figures do not depend on it.
    Returns:
        Quantification: Figures, and a row for each nucleus.
    Raises:
        UnknownPixelSizeError: ``mpp`` is not known.
        TooLargeError: The region is larger than ``MAX_AREA_MM2``.
        InvalidGeometryError, EmptyRegionError: See ``checked_region``.
    """
    config = config or QuantificationConfig()
    mpp_x, mpp_y = mpp
    if not (mpp_x and mpp_y and math.isfinite(mpp_x * mpp_y) and min(mpp_x, mpp_y) > 0):
        raise UnknownPixelSizeError(f"expected microns per pixel in x and y, got {mpp}")
    region = checked_region(polygon_l0, width_px=size_l0[0], height_px=size_l0[1])
    area_mm2 = region.area * mpp_x * mpp_y / 1e6
    if area_mm2 > MAX_AREA_MM2:
        raise TooLargeError(
            f"expected a region of at most {MAX_AREA_MM2:g} mm², got {area_mm2:.1f} mm²"
        )
    is_fine = max(mpp_x, mpp_y) <= MAX_NUCLEUS_MPP
    working = config.mpp if is_fine else max(mpp_x, mpp_y)
    grid = Grid(working, (working / mpp_x, working / mpp_y))
    sums = _Sums()
    outline = shapely.transform(region, lambda xy: xy / grid.step_l0)
    tiles = list(tiles_of(outline, tile_px))
    progress(0, len(tiles), "measuring")
    for number, tile in enumerate(tiles, 1):
        _add_tile(sums, slide, outline, tile, grid, config, is_fine)
        progress(number, len(tiles), "measuring")
    return _result(sums, grid, config, area_mm2, is_fine)


def tiles_of(outline: Region, tile_px: int) -> Iterator[Tile]:
    """Tiles that a region touches, row by row, each limited to the region's bounds."""
    left, top, right, bottom = shapely.bounds(outline).tolist()
    columns = _edges(left, right, tile_px)
    rows = _edges(top, bottom, tile_px)
    shapely.prepare(outline)
    for (y, next_y), (x, next_x) in product(pairwise(rows), pairwise(columns)):
        tile = Tile(x, y, next_x - x, next_y - y)
        if outline.intersects(tile.box):
            yield tile


def _edges(low: float, high: float, tile_px: int) -> list[int]:
    """Borders of the tiles between two coordinates: multiples of ``tile_px``, and both ends."""
    first, last = math.floor(low), math.ceil(high)
    between = range((first // tile_px + 1) * tile_px, last, tile_px)
    return [first, *between, last]


def _add_tile(  # noqa: PLR0917
    sums: _Sums,
    slide: PixelSource,
    outline: Region,
    tile: Tile,
    grid: Grid,
    config: QuantificationConfig,
    with_nuclei: bool,
) -> None:
    margin = max(math.ceil(REACH_UM / grid.mpp) if with_nuclei else 0, HAZE_REACH_PX)
    pixels = _read(slide, tile, grid, margin)
    densities = channel_densities(pixels)
    stains = unmixed(densities, config.staining)
    core = (slice(margin, margin + tile.height), slice(margin, margin + tile.width))
    inside = inside_of(outline, tile)
    haze = pixel_haze(pixels, WHITE)[core]
    tissue = inside & ~haze & (densities[core].max(axis=2) >= config.tissue_od)
    sums.inside += int(inside.sum())
    sums.tissue += int(tissue.sum())
    sums.density += stains[core][tissue].sum(axis=0, dtype=np.float64)
    if config.staining is not Staining.HE:
        sums.positive += int((stains[core][tissue][:, 1] >= config.weak_od).sum())
    if with_nuclei:
        dab = (
            stains[..., 1] if config.staining is not Staining.HE else np.zeros_like(stains[..., 1])
        )
        nuclei = find_nuclei(_signal(stains, config.staining), dab, config)
        sums.nuclei.append(_nuclei_in_tile(nuclei, outline, tile, grid, margin))


def _read(slide: PixelSource, tile: Tile, grid: Grid, margin: int) -> ImageU8:
    """Pixels of a tile with its overlap."""
    width, height = tile.width + 2 * margin, tile.height + 2 * margin
    step_x, step_y = grid.step_l0
    xy_l0 = ((tile.x - margin) * step_x, (tile.y - margin) * step_y)
    return slide.read_region(xy_l0, (width * step_x, height * step_y), (width, height))


def _signal(stains: ArrayF32, staining: Staining) -> ArrayF32:
    """Density by which nuclei are found: in nuclei, DAB hides haematoxylin, so both count."""
    if staining is Staining.DAB_NUCLEAR:
        return np.ascontiguousarray(stains.sum(axis=2))
    return np.ascontiguousarray(stains[..., 0])


def inside_of(outline: Region, tile: Tile) -> ArrayBool:
    """(height, width) bool: pixels of a tile inside a region, to half a pixel at its rim."""
    if shapely.contains_properly(outline, tile.box):
        return np.ones((tile.height, tile.width), bool)
    mask = np.zeros((tile.height, tile.width), np.uint8)
    polygons = shapely.get_parts(outline)
    rings = [ring for polygon in polygons for ring in (polygon.exterior, *polygon.interiors)]
    # a pixel's centre is an integer to OpenCV, and +0.5 here
    points = [
        (np.asarray(r.coords) - (tile.x + 0.5, tile.y + 0.5)) * 2**_SUBPIXEL_BITS for r in rings
    ]
    fixed_point = [np.round(p).astype(np.int32) for p in points]
    cv2.fillPoly(mask, fixed_point, 1, shift=_SUBPIXEL_BITS)
    return mask.astype(bool)


def _nuclei_in_tile(
    nuclei: NucleusTable,
    outline: Region,
    tile: Tile,
    grid: Grid,
    margin: int,
) -> NucleusTable:
    """Nuclei whose centroid is in the tile and in the region, in level-0 pixels."""
    local = nuclei.xy_l0 - margin
    xy = local + np.array([tile.x, tile.y])
    is_kept = ((local >= 0) & (local < (tile.width, tile.height))).all(axis=1)
    is_kept &= shapely.contains_xy(outline, xy[:, 0], xy[:, 1])
    return NucleusTable(
        xy_l0=(xy * grid.step_l0)[is_kept],
        radius_um=nuclei.radius_um[is_kept],
        dab_od=nuclei.dab_od[is_kept],
        bins=nuclei.bins[is_kept],
    )


def _result(
    sums: _Sums, grid: Grid, config: QuantificationConfig, area_mm2: float, with_nuclei: bool
) -> Quantification:
    tissue = sums.tissue
    means = sums.density / tissue if tissue else np.zeros(2)
    names = stain_names(config.staining)
    has_dab = config.staining is not Staining.HE
    return Quantification(
        area_mm2=area_mm2,
        tissue_mm2=area_mm2 * tissue / sums.inside if sums.inside else 0.0,
        mean_od={name: float(od) for name, od in zip(names, means, strict=True)},
        positive_area_percent=100 * sums.positive / tissue if tissue and has_dab else None,
        nuclei=_concatenate(sums.nuclei) if with_nuclei else None,
        nuclei_missing="" if with_nuclei else TOO_COARSE,
        has_nuclear_marker=config.staining is Staining.DAB_NUCLEAR,
        working_mpp=grid.mpp,
    )


def _concatenate(tables: list[NucleusTable]) -> NucleusTable:
    return NucleusTable(
        xy_l0=np.concatenate([table.xy_l0 for table in tables]),
        radius_um=np.concatenate([table.radius_um for table in tables]),
        dab_od=np.concatenate([table.dab_od for table in tables]),
        bins=np.concatenate([table.bins for table in tables]),
    )
