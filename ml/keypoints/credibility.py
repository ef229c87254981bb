"""Test whether consistent matches show the same scene, not chance or a static overlay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.keypoints.features import ImageFeatures
from ml.keypoints.verification.patch_alignment import AlignConfig, align_patches, smooth_plane
from ml.types import ArrayBool, ArrayF32

STATIC_PX = 0.75
"""Largest motion of a static point, px: key points are localised to about half a pixel."""

MOVING_PX = 5 * STATIC_PX
"""Smallest median motion of the other points, px, of a scene that moves behind static points."""

MIN_MOVING = 20
"""Smallest number of moving points: a few among static ones are more likely wrong matches."""

CELLS_A_SIDE = 16
"""Cells along the longer side of the grid that measures coverage: burnt-in text covers a few cells,
tissue that two images have in common many."""


SLOW_PX, MIN_SLOW_SHARE = 3.0, 0.25
"""Motion, px, below which a match may be one of a fixed pattern, and the share of such matches
from which the tissue below them is tested. A rotation or a change of scale has fewer."""

COARSE_PX = 6.0
"""Blur, and spacing of the samples of a patch, px, at which noise and the fixed pattern of a sensor
or a fibre bundle vanish and the light and shade of tissue remain."""

DARK_GREY = 70
"""99th percentile of the grey values of a view below which it is dark."""

COARSE_POINTS = 200
"""Largest number of still matches that are aligned in the blurred images."""


@dataclass(frozen=True, slots=True)
class CredibilityConfig:
    """Required matches; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        min_agreeing: Smallest number of locally consistent matches.
        min_cells: Smallest number of cells with matches, in both images, as text or a logo of two
            recordings is consistent in a corner.
        min_still_share: Without motion, smallest share of the cells with key points of a that have
            matches, as recordings of the same device have its text in common.
        max_coarse_px, min_coarse_zncc: Half of the blurred surroundings of slow matches move less
            than these and correlate more, as dark images of the same device have the pattern of its
            sensor in common.
        min_dark_zncc: The same correlation in dark images, where the pattern remains when blurred.
    """

    min_agreeing: int = 12
    min_cells: int = 4
    min_still_share: float = 0.4
    max_coarse_px: float = 3.0
    min_coarse_zncc: float = 0.95
    min_dark_zncc: float = 0.975


def is_credible(
    a: ImageFeatures,
    b: ImageFeatures,
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    *,
    config: CredibilityConfig = CredibilityConfig(),
) -> bool:
    """Return whether matches are numerous and spread enough to show the same scene.

    Args:
        a, b: Features of the images.
        xy_a, xy_b: (N, 2) matches, in pixels of the views of a and b.
    """
    shape_a, shape_b = a.view.grey.shape, b.view.grey.shape
    cells = min(covered_cells(xy_a, shape_a), covered_cells(xy_b, shape_b))
    if len(xy_a) < config.min_agreeing or cells < config.min_cells:
        return False
    shift = np.hypot(*(a.view.to_image(xy_a) - b.view.to_image(xy_b)).T)
    if float(np.median(shift)) >= STATIC_PX:
        return True
    return cells >= config.min_still_share * covered_cells(a.keypoints.xy, shape_a)


def is_tissue_still(
    a: ImageFeatures,
    b: ImageFeatures,
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    *,
    config: CredibilityConfig = CredibilityConfig(),
) -> bool:
    """Return whether the blurred surroundings of still matches are still, too.

    Args:
        a, b: Features of the images.
        xy_a, xy_b: (N, 2) matches, in pixels of the views of a and b, N >= 1.
    """
    rows = np.linspace(0, len(xy_a) - 1, min(len(xy_a), COARSE_POINTS)).astype(np.int64)
    start = xy_b[rows].astype(np.float64)
    alignment = align_patches(
        smooth_plane(a.view.grey, COARSE_PX),
        smooth_plane(b.view.grey, COARSE_PX),
        xy_a[rows].astype(np.float64),
        start,
        np.tile(np.eye(2), (len(rows), 1, 1)),
        config=AlignConfig(step_px=COARSE_PX),
    )
    moved_px = np.hypot(*(alignment.xy_b - start).T)
    is_dark = min(np.percentile(f.view.grey, 99) for f in (a, b)) < DARK_GREY
    min_zncc = config.min_dark_zncc if is_dark else config.min_coarse_zncc
    still = (moved_px < config.max_coarse_px) & (alignment.zncc >= min_zncc)
    return bool(still.mean() >= 0.5)


def moves_with_scene(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayBool:
    """Mask (N,) bool, False for points that are static while others move (dirt, a rim, text).

    Args:
        xy_a, xy_b: (N, 2) matches, in pixels of the images.
    """
    shift = np.hypot(*(xy_a - xy_b).T)
    static = shift < STATIC_PX
    moving = shift[~static]
    if len(moving) > max(MIN_MOVING, static.sum()) and np.median(moving) > MOVING_PX:
        return np.asarray(~static, np.bool_)
    return np.ones(len(shift), np.bool_)


def is_slow(a: ImageFeatures, b: ImageFeatures, xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayBool:
    """Mask (N,) bool of matches (N, 2), in pixels of the views, that hardly move in the images."""
    shift = np.hypot(*(a.view.to_image(xy_a) - b.view.to_image(xy_b)).T)
    return np.asarray(shift < SLOW_PX, np.bool_)


def has_fixed_pattern(
    a: ImageFeatures,
    b: ImageFeatures,
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    *,
    config: CredibilityConfig = CredibilityConfig(),
) -> bool:
    """Return whether many matches are slow and the tissue below them moves otherwise.

    Args:
        a, b: Features of the images.
        xy_a, xy_b: (N, 2) matches, in pixels of the views of a and b.
    """
    slow = is_slow(a, b, xy_a, xy_b)
    if not slow.any() or slow.mean() < MIN_SLOW_SHARE:
        return False
    return not is_tissue_still(a, b, xy_a[slow], xy_b[slow], config=config)


def covered_cells(xy: npt.NDArray[np.floating], shape: tuple[int, ...]) -> int:
    """Number of cells with a point, of a grid with 16 cells along the longer side of (H, W)."""
    if not len(xy):
        return 0
    cell_px = max(shape) / CELLS_A_SIDE
    index = np.floor(np.asarray(xy) / cell_px).astype(np.int64)
    return len(np.unique(index, axis=0))
