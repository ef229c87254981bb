"""Where the patches of a region are: scrambled Sobol points, kept where they cover the region."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import shapely
from scipy.stats import qmc
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError
from ml.types import ArrayBool, ArrayF64

PATTERNS = ("sobol", "grid")
_MAX_CANDIDATES = 1 << 16  # bounds memory; the vertex budget takes 256 of them
_SIMPLIFY_PX = 1.0  # finer corners of an outline move no patch


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How a region is sampled. All lengths in pixels of the encoder (1 um at 10x)."""

    target_mpp: float = 1.0  # 10x equivalent, the paper's table I
    patch_px: int = 224  # section III-A
    density: float = 3.0  # patches per patch area: how often a point is covered on average
    min_inside: float = 0.5  # share of a patch inside the region, section III-A
    max_vertices: int = 256  # budget: larger regions are thinned, see implied_density
    min_vertices: int = 8  # a small region is sampled more densely, as far as it can
    seed: int = 0  # scrambling of the Sobol sequence
    pattern: str = "sobol"  # or "grid": evenly spaced at the same density, for comparison


@dataclass(frozen=True, slots=True)
class PatchSample:
    """Patches of one region.

    Attributes:
        centre_px: (N, 2) float64, x right, y down, in pixels of the encoder, N >= 1; the patches
            lie on the image wherever it is large enough.
        density: patches per patch area that the budget allowed.
        downsample: level-0 pixels per pixel of the encoder.
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
        region_l0: valid polygon or multipolygon in level-0 pixels, on the image.
        downsample: level-0 pixels per pixel of the encoder. config: density, budget and seed.
        width_l0, height_l0: size of the image; patches are shifted to lie on it.
    Returns:
        The same for the same region, scale and configuration. Where no patch is inside by more than
        ``min_inside``, the best are kept; a region up to a quarter of a patch gets a single one.
    Raises:
        BadInputError: ``downsample`` is not above 0, or the pattern is unknown.
    Source: the retrieval paper, section III-A; departs from it by the budget and by those rules.
    """
    config = config or SamplingConfig()
    if downsample <= 0:
        raise BadInputError(f"downsample: expected more than 0, got {downsample}")
    if config.pattern not in PATTERNS:
        raise BadInputError(
            f"pattern: expected one of {', '.join(PATTERNS)}, got {config.pattern!r}"
        )
    region = affinity.scale(region_l0, 1 / downsample, 1 / downsample, origin=(0, 0))
    region = _simplified(region)
    density = implied_density(region.area, config)
    size_px = (width_l0 / downsample, height_l0 / downsample)
    points = _sobol_points if config.pattern == "sobol" else _grid_points
    candidates = points(region, density, config)
    inside = _inside_share(region, candidates, config.patch_px)
    centres = _within_budget(candidates[_kept(inside, config)], config)
    if centres.shape[0] == 0 or region.area <= config.patch_px**2 / 4:
        middle = region.representative_point()
        centres = np.array([[middle.x, middle.y]])
    centres = _with_missed_parts(region, centres, config)
    return PatchSample(_on_image(centres, size_px, config.patch_px), density, downsample)


def _simplified(region: BaseGeometry) -> BaseGeometry:
    simple = region.simplify(_SIMPLIFY_PX)
    return region if simple.is_empty or simple.area == 0 else simple


def implied_density(area_px: float, config: SamplingConfig) -> float:
    """Patches per patch area: the configured one, within the least and the largest number.

    With the defaults the budget of 256 begins to thin regions out above 85 patch areas (4.3 million
    pixels at 10x, 2.1 mm across); 10^9 pixels get 0.013 patches per patch area.

    Args:
        area_px: of the region, in pixels of the encoder.
    """
    patches = max(area_px / config.patch_px**2, 1e-9)
    wanted = max(config.density, config.min_vertices / patches)
    return min(wanted, config.max_vertices / patches)


def _sobol_points(region: BaseGeometry, density: float, config: SamplingConfig) -> ArrayF64:
    left, top, right, bottom = region.bounds
    box_area = max((right - left) * (bottom - top), 1e-9)
    wanted = math.ceil(density * box_area / config.patch_px**2)
    count = min(max(wanted, 1), _MAX_CANDIDATES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # any number of points is fine: balance is not needed
        unit = qmc.Sobol(2, scramble=True, rng=np.random.default_rng(config.seed)).random(count)
    return np.asarray(unit * (right - left, bottom - top) + (left, top))


def _grid_points(region: BaseGeometry, density: float, config: SamplingConfig) -> ArrayF64:
    """Centres of the cells of a grid over the bounding box, as dense as the Sobol points."""
    left, top, right, bottom = region.bounds
    step = config.patch_px / math.sqrt(density)
    step = max(step, math.sqrt(max((right - left) * (bottom - top), 1e-9) / _MAX_CANDIDATES))
    columns, rows = (max(1, round(s / step)) for s in (right - left, bottom - top))
    x = left + (np.arange(columns) + 0.5) * (right - left) / columns
    y = top + (np.arange(rows) + 0.5) * (bottom - top) / rows
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _within_budget(centres: ArrayF64, config: SamplingConfig) -> ArrayF64:
    """The first points of a sequence, or points of a grid left out evenly."""
    if centres.shape[0] <= config.max_vertices or config.pattern == "sobol":
        return centres[: config.max_vertices]
    evenly = np.linspace(0, centres.shape[0] - 1, config.max_vertices).round().astype(int)
    return np.asarray(centres[evenly], np.float64)


def _with_missed_parts(region: BaseGeometry, centres: ArrayF64, config: SamplingConfig) -> ArrayF64:
    """One more patch for each part of a multipolygon that none touches, largest first."""
    parts = shapely.get_parts(region)
    room = config.max_vertices - centres.shape[0]
    if parts.size < 2 or room <= 0:
        return centres
    half = config.patch_px / 2
    x, y = centres.T
    boxes = shapely.STRtree(shapely.box(x - half, y - half, x + half, y + half))
    touched = np.unique(boxes.query(parts, predicate="intersects")[0])
    missed = np.delete(parts, touched)
    missed = missed[np.argsort(-shapely.area(missed), kind="stable")][:room]
    middle = [part.representative_point() for part in missed]
    return np.concatenate([centres, np.array([[p.x, p.y] for p in middle]).reshape(-1, 2)])


def _inside_share(region: BaseGeometry, centres: ArrayF64, patch_px: int) -> ArrayF64:
    """(N,): share of each patch that lies in the region."""
    half = patch_px / 2
    x, y = centres.T
    boxes = shapely.box(x - half, y - half, x + half, y + half)
    shapely.prepare(region)
    share = np.zeros(len(centres))
    share[shapely.contains(region, boxes)] = 1.0
    cut = (share == 0) & shapely.intersects(region, boxes)
    share[cut] = shapely.area(shapely.intersection(region, boxes[cut])) / patch_px**2
    return share


def _kept(inside: ArrayF64, config: SamplingConfig) -> ArrayBool:
    """Patches inside by more than the required share, or by more than half of the best there is."""
    best = float(inside.max(initial=0.0))
    if best > config.min_inside:
        return inside > config.min_inside
    return inside > best / 2


def _on_image(centres: ArrayF64, size_px: tuple[float, float], patch_px: int) -> ArrayF64:
    half = patch_px / 2
    out = np.empty_like(centres)
    for axis, length in enumerate(size_px):
        if length >= patch_px:
            out[:, axis] = np.clip(centres[:, axis], half, length - half)
        else:
            out[:, axis] = length / 2
    return np.unique(out.round(3), axis=0) if len(out) > 1 else out
