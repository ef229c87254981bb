"""Test whether consistent matches show the same scene, not chance or a static overlay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.keypoints.features import ImageFeatures
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


@dataclass(frozen=True, slots=True)
class CredibilityConfig:
    """Required matches; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        min_agreeing: Smallest number of locally consistent matches.
        min_cells: Smallest number of cells with matches, in both images, as text or a logo of two
            recordings is consistent in a corner.
        min_still_share: Without motion, smallest share of the cells with key points of a that have
            matches, as recordings of the same device have its text in common.
    """

    min_agreeing: int = 12
    min_cells: int = 4
    min_still_share: float = 0.4


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
    is_still = float(np.median(shift)) < STATIC_PX
    return not is_still or cells >= config.min_still_share * covered_cells(a.keypoints.xy, shape_a)


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


def covered_cells(xy: npt.NDArray[np.floating], shape: tuple[int, ...]) -> int:
    """Number of cells with a point, of a grid with 16 cells along the longer side of (H, W)."""
    if not len(xy):
        return 0
    cell_px = max(shape) / CELLS_A_SIDE
    index = np.floor(np.asarray(xy) / cell_px).astype(np.int64)
    return len(np.unique(index, axis=0))
