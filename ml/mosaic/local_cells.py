"""What the grey values of two views say of how one is displaced against the other, by cells."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.mosaic.direct_views import FINE_SIGMA
from ml.types import ArrayBool, ArrayF32, ArrayF64

NODES = 9
"""Of a mesh, each way: an eighth of the view is as fine as vessels let a displacement be known."""

TUKEY = 4.0
"""Spreads of the differences from which a px has no say."""

SPREAD_POINTS = 1_500
"""Enough differences to know their spread."""

FINER, CELL_REACH = 4, 0.25
"""Cells are summed by quarters, and blurred by a quarter of their width."""

LEAST_INFORMATION = 1e-3
"""1 / px2, of both directions together: a cell with less knows nothing."""

LEAST_OVERLAP = 0.15
"""Share of a view that another must show, to say something of it."""


@dataclass(frozen=True, slots=True)
class Cells:
    """What the px of C cells of view a say of how b is displaced against it.

    Attributes:
        xy: (C, 2), middles, px of a. tensor: (C, 2, 2), information, 1 / px2. pull: (C, 2): with a
            displacement d of b against a, px of a, the cost is ``d' T d / 2 + pull' d``.
    """

    xy: ArrayF64
    tensor: ArrayF64
    pull: ArrayF64


def cells_of_pair(
    a: tuple[ArrayF32, ArrayBool], b: tuple[ArrayF32, ArrayBool], b_from_a: ArrayF64
) -> Cells | None:
    """Compare two views, each an image and where it is trusted; None where they hardly overlap.

    Args:
        b_from_a: (3, 3), px of a to px of b.
    """
    found = difference(a, b, b_from_a)
    if found is None:
        return None
    height, width = a[0].shape
    lack, both = found
    spread = spread_of(lack, both)
    ratio = np.clip(np.abs(lack) / (TUKEY * spread), 0, 1)
    weight = np.where(both, (1 - ratio**2) ** 2, 0).astype(np.float32)
    # correlated differences: a px tells less than an independent sample would
    weight *= np.float32((spread * 2 * np.sqrt(np.pi) * FINE_SIGMA) ** -2)
    mean = a[0] + 0.5 * lack  # beyond both it weighs nothing
    x = cv2.Sobel(mean, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    y = cv2.Sobel(mean, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    side = NODES - 1
    products = (x * x, x * y, y * y, x * lack, y * lack)
    sums = np.stack([_summed(weight * product, side) for product in products], axis=1)
    return cells_of_sums(sums, (height, width))


def cells_of_sums(sums: ArrayF64, shape: tuple[int, int]) -> Cells:
    """The cells that know something, of all of a view of (h, w) px.

    Args:
        sums: (64, 5), xx, xy, yy of the slope, x and y times the difference, weighted.
    """
    side = NODES - 1
    tensor = sums[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    column, row = np.meshgrid(*((np.arange(side) + 0.5) * n / side - 0.5 for n in shape[::-1]))
    keep = np.trace(tensor, axis1=1, axis2=2) > LEAST_INFORMATION
    xy = np.stack([column.ravel(), row.ravel()], axis=1)
    return Cells(xy[keep], tensor[keep], sums[keep, 3:])


def difference(
    a: tuple[ArrayF32, ArrayBool], b: tuple[ArrayF32, ArrayBool], b_from_a: ArrayF64
) -> tuple[ArrayF32, ArrayBool] | None:
    """b less a, px of a, 0 where they are not both trusted, and where they are; or None."""
    height, width = a[0].shape
    flags = cv2.WARP_INVERSE_MAP
    other = cv2.warpPerspective(b[0], b_from_a, (width, height), flags=cv2.INTER_LINEAR | flags)
    seen = cv2.warpPerspective(
        b[1].astype(np.uint8), b_from_a, (width, height), flags=cv2.INTER_NEAREST | flags
    )
    both = a[1] & (seen > 0)
    if both.sum() < LEAST_OVERLAP * a[1].sum() or not both.any():
        return None
    return np.where(both, other - a[0], np.float32(0)), both


def spread_of(lack: ArrayF32, both: ArrayBool) -> float:
    """Of the differences of two views: their deviation, told by the median."""
    some = lack[both][:: max(1, int(both.sum()) // SPREAD_POINTS)]
    return max(1.4826 * float(np.median(np.abs(some - np.median(some)))), 1e-3)


def _summed(values: ArrayF32, side: int) -> ArrayF64:
    """(side * side,) sums over cells that reach a little into each other."""
    small = cv2.resize(values, (FINER * side, FINER * side), interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(small, (0, 0), CELL_REACH * FINER)
    cells = cv2.resize(smooth, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(cells.ravel(), np.float64) * (values.size / side**2)
