"""Whether matches that agree show the scene, not chance and not what stands still on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.keypoints.features import ImageFeatures
from ml.types import ArrayBool, ArrayF32

STATIC_PX = 0.75
"""What moves less between two images stands still: a key point is found again within half a pixel
or so."""

MOVING_PX = 5 * STATIC_PX
"""Where the median of the others moves further, the scene moves under what stands still."""

MIN_MOVING = 20
"""At least this many must move: a few moving matches among still ones are more likely wrong."""

CELLS_A_SIDE = 16
"""Coverage is counted over a grid of this many cells along the longer side: a line of burnt-in text
fills a few of them, tissue that two images share fills many."""


@dataclass(frozen=True, slots=True)
class CredibilityConfig:
    """How many matches are enough; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        min_agreeing: fewer locally consistent matches are taken for chance.
        min_cells: they must lie in this many cells of a 16-cell grid, in both images: a burnt-in
            text or a logo that two recordings share agrees perfectly, in one corner.
        min_still_share: where nothing moves, they must lie in this share of the cells that hold
            key points of a: two recordings of one device share its text wherever it stands.
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
    """More matches than chance gives, in more than one corner; more so where nothing moves.

    Args:
        xy_a, xy_b: (N, 2) matches, in pixels of the views of a and b.
    """
    shape_a, shape_b = a.view.grey.shape, b.view.grey.shape
    cells = min(covered_cells(xy_a, shape_a), covered_cells(xy_b, shape_b))
    if len(xy_a) < config.min_agreeing or cells < config.min_cells:
        return False
    shift = np.hypot(*(a.view.to_image(xy_a) - b.view.to_image(xy_b)).T)
    is_still = float(np.median(shift)) < STATIC_PX
    return not is_still or cells >= config.min_still_share * covered_cells(a.keypoints.xy, shape_a)


def is_of_the_scene(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayBool:
    """(N,) bool: False for points that stand still while most others move (dirt, a rim, text).

    Args:
        xy_a, xy_b: (N, 2) matches, in pixels of the images.
    """
    shift = np.hypot(*(xy_a - xy_b).T)
    static = shift < STATIC_PX
    rest = shift[~static]
    if len(rest) > max(MIN_MOVING, static.sum()) and np.median(rest) > MOVING_PX:
        return np.asarray(~static, np.bool_)
    return np.ones(len(shift), np.bool_)


def covered_cells(xy: npt.NDArray[np.floating], shape: tuple[int, ...]) -> int:
    """How many cells of a square grid, 16 along the longer side of (H, W), hold a point."""
    if not len(xy):
        return 0
    cell_px = max(shape) / CELLS_A_SIDE
    index = np.floor(np.asarray(xy) / cell_px).astype(np.int64)
    return len(np.unique(index, axis=0))
