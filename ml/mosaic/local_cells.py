"""What the grey values of two views say of how one is displaced against the other, by cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from ml.geometry import translation
from ml.mosaic.differences import spread_of, tukey_weight
from ml.mosaic.direct_views import FINE_SIGMA
from ml.types import ArrayBool, ArrayF32, ArrayF64

NODES = 9
"""Of a mesh, each way: an eighth of the view is as fine as vessels let a displacement be known."""

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
    """Compare two views, each an image and where it is trusted; None if they hardly overlap.

    Args:
        b_from_a: (3, 3), px of a to px of b.
    """
    rows, columns = _box(a[1])  # beyond it nothing has weight
    part = a[0][rows, columns], a[1][rows, columns]
    found = difference(part, b, b_from_a @ translation(columns.start, rows.start))
    if found is None:
        return None
    height, width = a[0].shape
    lack, both = found
    weight = _weight(lack, both)
    mean = part[0] + 0.5 * lack  # beyond both it weighs nothing
    x = cv2.Sobel(mean, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    y = cv2.Sobel(mean, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    by_x, by_y = weight * x, weight * y
    products = np.stack([by_x * x, by_x * y, by_y * y, by_x * lack, by_y * lack])
    sums = summing(height)[:, rows] @ products @ summing(width)[:, columns].T
    return cells_of_sums(sums.reshape(len(sums), -1).T.astype(np.float64), (height, width))


def _box(seen: ArrayBool) -> tuple[slice, slice]:
    """Rows and columns of the px that are trusted, and one px more for slopes."""
    found = []
    for across in (1, 0):
        at = np.flatnonzero(seen.any(axis=across))
        first, last = (at[0], at[-1]) if len(at) else (0, 0)
        found.append(slice(max(0, int(first) - 1), int(last) + 2))
    return found[0], found[1]


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
    """b less a at the px of a, 0 unless both are trusted, and where both are; None if too few."""
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


def _weight(lack: ArrayF32, both: ArrayBool) -> ArrayF32:
    """(h, w): what each px has to say, 1 / (grey)^2; Tukey's weights."""
    spread = spread_of(lack, both)
    # correlated differences: a px tells less than an independent sample would
    unit = np.float32((spread * 2 * np.sqrt(np.pi) * FINE_SIGMA) ** -2)
    return np.asarray(tukey_weight(lack, spread) * (unit * both), np.float32)


@lru_cache(maxsize=8)  # two sides of two levels, of a few videos
def summing(length: int) -> ArrayF32:
    """(8, length): what sums a column of px up in cells that reach a little into each other."""
    side, sigma = NODES - 1, CELL_REACH * FINER
    small = cv2.resize(np.eye(length), (length, FINER * side), interpolation=cv2.INTER_AREA)
    kernel = cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma)
    smooth = cv2.sepFilter2D(small, -1, np.ones((1, 1)), kernel)
    cells = cv2.resize(smooth, (length, side), interpolation=cv2.INTER_AREA)
    return np.asarray(cells * (length / side), np.float32)
