"""Patch positions of a region: scrambled Sobol points, filtered by their overlap with it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import shapely
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError
from ml.types import ArrayBool, ArrayF64

PATTERNS = ("sobol", "grid")
_MAX_CANDIDATES = 1 << 16  # bounds memory
_SIMPLIFY_PX = 1.0  # tolerance that does not change the patches


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """Configuration of sampling. All lengths in pixels of the encoder (1 um at 10x)."""

    target_mpp: float = 1.0  # 10x equivalent, the paper's table I
    patch_px: int = 224  # section III-A
    density: float = 3.0  # patches per patch area: average coverage of a point
    min_inside: float = 0.5  # share of a patch inside the region, section III-A
    max_vertices: int = 256  # budget: larger regions have a lower density, see implied_density
    min_vertices: int = 8  # small regions have a higher density
    seed: int = 0  # scrambling of the Sobol sequence
    pattern: str = "sobol"  # or "grid": evenly spaced at the same density, for comparison


@dataclass(frozen=True, slots=True)
class PatchSample:
    """Patches of a region.

    Attributes:
        centre_px: (N, 2) float64, x right, y down, in pixels of the encoder, N >= 1; the patches
            are inside the image if it is large enough.
        density: Patches per patch area, within the budget.
        downsample: Level-0 pixels per pixel of the encoder.
    """

    centre_px: ArrayF64
    density: float
    downsample: float

    def __len__(self) -> int:
        return int(self.centre_px.shape[0])


def sample_patches(
    region_l0: BaseGeometry,
    *,
    downsample: float,
    width_l0: int,
    height_l0: int,
    config: SamplingConfig | None = None,
) -> PatchSample:
    """Choose the patches of a region.

    Args:
        region_l0: Valid polygon or multipolygon in level-0 pixels, inside the image.
        downsample: Level-0 pixels per pixel of the encoder.
        width_l0, height_l0: Size of the image; patches are shifted to be inside.
        config: Density, budget and seed.
    Returns:
        Deterministic patches. If no patch is inside by more than ``min_inside``, the best ones are
        used; a region up to a quarter of a patch gets a single patch.
    Raises:
        BadInputError: ``downsample`` is not above 0, or the pattern is unknown.
    Source: the retrieval paper, section III-A; departs from it by the budget and these rules.
    """
    config = config or SamplingConfig()
    if downsample <= 0:
        raise BadInputError(f"downsample: expected more than 0, got {downsample}")
    if config.pattern not in PATTERNS:
        raise BadInputError(
            f"pattern: expected one of {', '.join(PATTERNS)}, got {config.pattern!r}"
        )
    region = affinity.scale(region_l0, 1 / downsample, 1 / downsample, origin=(0, 0))
    region = _simplify(region)
    density = implied_density(region.area, config)
    size_px = (width_l0 / downsample, height_l0 / downsample)
    points = _sobol_points if config.pattern == "sobol" else _grid_points
    candidates = points(region, density, config)
    inside = _inside_share(region, candidates, config.patch_px)
    centres = _select_within_budget(candidates[_inside_mask(inside, config)], config)
    if centres.shape[0] == 0 or region.area <= config.patch_px**2 / 4:
        middle = region.representative_point()
        centres = np.array([[middle.x, middle.y]])
    centres = _with_untouched_parts(region, centres, config)
    return PatchSample(_keep_on_image(centres, size_px, config.patch_px), density, downsample)


def _simplify(region: BaseGeometry) -> BaseGeometry:
    simple = region.simplify(_SIMPLIFY_PX)
    return region if simple.is_empty or simple.area == 0 else simple


def implied_density(area_px: float, config: SamplingConfig) -> float:
    """Patches per patch area, within the bounds of the number of vertices.

    With the defaults, the budget of 256 lowers the density of regions above 85 patch areas (4.3
    million pixels at 10x, 2.1 mm across); 10^9 pixels get 0.013 patches per patch area.

    Args:
        area_px: Area of the region, in pixels of the encoder.
    """
    patches = max(area_px / config.patch_px**2, 1e-9)
    target = max(config.density, config.min_vertices / patches)
    return min(target, config.max_vertices / patches)


def _sobol_points(region: BaseGeometry, density: float, config: SamplingConfig) -> ArrayF64:
    from scipy.stats import qmc  # importing it takes longer than all the rest of this package

    left, top, right, bottom = region.bounds
    box_area = max((right - left) * (bottom - top), 1e-9)
    target = math.ceil(density * box_area / config.patch_px**2)
    count = min(max(target, 1), _MAX_CANDIDATES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of points need not be a power of two
        unit_points = qmc.Sobol(2, scramble=True, rng=np.random.default_rng(config.seed)).random(
            count
        )
    return np.asarray(unit_points * (right - left, bottom - top) + (left, top))


def _grid_points(region: BaseGeometry, density: float, config: SamplingConfig) -> ArrayF64:
    """Centres of the cells of a grid over the bounding box, with the density of Sobol points."""
    left, top, right, bottom = region.bounds
    step = config.patch_px / math.sqrt(density)
    step = max(step, math.sqrt(max((right - left) * (bottom - top), 1e-9) / _MAX_CANDIDATES))
    columns, rows = (max(1, round(s / step)) for s in (right - left, bottom - top))
    x = left + (np.arange(columns) + 0.5) * (right - left) / columns
    y = top + (np.arange(rows) + 0.5) * (bottom - top) / rows
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _select_within_budget(centres: ArrayF64, config: SamplingConfig) -> ArrayF64:
    """The first points of a Sobol sequence, or an even subset of a grid."""
    if centres.shape[0] <= config.max_vertices or config.pattern == "sobol":
        return centres[: config.max_vertices]
    indices = np.linspace(0, centres.shape[0] - 1, config.max_vertices).round().astype(int)
    return np.asarray(centres[indices], np.float64)


def _with_untouched_parts(
    region: BaseGeometry, centres: ArrayF64, config: SamplingConfig
) -> ArrayF64:
    """Add a patch for each part of a multipolygon that no patch touches, largest first."""
    parts = shapely.get_parts(region)
    n_free = config.max_vertices - centres.shape[0]
    if parts.size < 2 or n_free <= 0:
        return centres
    half = config.patch_px / 2
    x, y = centres.T
    boxes = shapely.STRtree(shapely.box(x - half, y - half, x + half, y + half))
    touched_parts = np.unique(boxes.query(parts, predicate="intersects")[0])
    untouched = np.delete(parts, touched_parts)
    untouched = untouched[np.argsort(-shapely.area(untouched), kind="stable")][:n_free]
    middle = [part.representative_point() for part in untouched]
    return np.concatenate([centres, np.array([[p.x, p.y] for p in middle]).reshape(-1, 2)])


def _inside_share(region: BaseGeometry, centres: ArrayF64, patch_px: int) -> ArrayF64:
    """Share (N,) of each patch inside the region."""
    half = patch_px / 2
    x, y = centres.T
    boxes = shapely.box(x - half, y - half, x + half, y + half)
    shapely.prepare(region)
    share = np.zeros(len(centres))
    share[shapely.contains(region, boxes)] = 1.0
    partial = (share == 0) & shapely.intersects(region, boxes)
    share[partial] = shapely.area(shapely.intersection(region, boxes[partial])) / patch_px**2
    return share


def _inside_mask(inside: ArrayF64, config: SamplingConfig) -> ArrayBool:
    """Mask of patches inside by more than the required share, or than half of the best share."""
    best = float(inside.max(initial=0.0))
    if best > config.min_inside:
        return inside > config.min_inside
    return inside > best / 2


def _keep_on_image(centres: ArrayF64, size_px: tuple[float, float], patch_px: int) -> ArrayF64:
    half = patch_px / 2
    out = np.empty_like(centres)
    for axis, length in enumerate(size_px):
        if length >= patch_px:
            out[:, axis] = np.clip(centres[:, axis], half, length - half)
        else:
            out[:, axis] = length / 2
    return np.unique(out.round(3), axis=0) if len(out) > 1 else out
