"""Displacement of one view against another from grey values, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from ml.geometry import translation
from ml.mosaic.direct.pyramid import FINE_SIGMA
from ml.mosaic.direct.residuals import spread_of, tukey_weight
from ml.types import ArrayBool, ArrayF32, ArrayF64

NODES = 9
"""Nodes of a mesh along each axis: an eighth of the view is as fine as vessels allow."""

FINER, CELL_REACH = 4, 0.25
"""Cells are summed by quarters, and blurred by a quarter of their width."""

MIN_INFORMATION = 1e-3
"""1 / px2, of both directions together: a cell with less is dropped."""

MIN_OVERLAP = 0.15
"""Smallest share of a view that another must show to be compared with it."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Quadratic cost of displacing view b against view a, for each of C cells.

    A displacement d of b, in px of a, costs ``d' T d / 2 + g' d``.

    Attributes:
        xy: (C, 2), centres of the cells, px of a.
        tensor: (C, 2, 2), T, the information matrix, 1 / px2.
        pull: (C, 2), g, the gradient of the cost at d = 0, 1 / px.
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
    compared = difference(part, b, b_from_a @ translation(columns.start, rows.start))
    if compared is None:
        return None
    height, width = a[0].shape
    residual, both = compared
    weight = _weight(residual, both)
    mean = part[0] + 0.5 * residual  # beyond both it weighs nothing
    x = cv2.Sobel(mean, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    y = cv2.Sobel(mean, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    by_x, by_y = weight * x, weight * y
    products = np.stack([by_x * x, by_x * y, by_y * y, by_x * residual, by_y * residual])
    sums = cell_sums_matrix(height)[:, rows] @ products @ cell_sums_matrix(width)[:, columns].T
    return cells_of_sums(sums.reshape(len(sums), -1).T.astype(np.float64), (height, width))


def _box(valid: ArrayBool) -> tuple[slice, slice]:
    """Rows and columns of the px that are trusted, and one px more for slopes."""
    ranges = []
    for across in (1, 0):
        at = np.flatnonzero(valid.any(axis=across))
        first, last = (at[0], at[-1]) if len(at) else (0, 0)
        ranges.append(slice(max(0, int(first) - 1), int(last) + 2))
    return ranges[0], ranges[1]


def cells_of_sums(sums: ArrayF64, shape: tuple[int, int]) -> Cells:
    """Cells with enough information, of a view of (h, w) px.

    Args:
        sums: (64, 5), xx, xy, yy of the slope, x and y times the difference, weighted.
    """
    side = NODES - 1
    tensor = sums[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    column, row = np.meshgrid(*((np.arange(side) + 0.5) * n / side - 0.5 for n in shape[::-1]))
    keep = np.trace(tensor, axis1=1, axis2=2) > MIN_INFORMATION
    xy = np.stack([column.ravel(), row.ravel()], axis=1)
    return Cells(xy[keep], tensor[keep], sums[keep, 3:])


def difference(
    a: tuple[ArrayF32, ArrayBool], b: tuple[ArrayF32, ArrayBool], b_from_a: ArrayF64
) -> tuple[ArrayF32, ArrayBool] | None:
    """Difference b - a at the px of a, 0 unless both are trusted, and the px where both are.

    None if these are too few.
    """
    height, width = a[0].shape
    flags = cv2.WARP_INVERSE_MAP
    other = cv2.warpPerspective(b[0], b_from_a, (width, height), flags=cv2.INTER_LINEAR | flags)
    valid = cv2.warpPerspective(
        b[1].astype(np.uint8), b_from_a, (width, height), flags=cv2.INTER_NEAREST | flags
    )
    both = a[1] & (valid > 0)
    if both.sum() < MIN_OVERLAP * a[1].sum() or not both.any():
        return None
    return np.where(both, other - a[0], np.float32(0)), both


def _weight(residual: ArrayF32, both: ArrayBool) -> ArrayF32:
    """(h, w) float32: Tukey's weight of each px, 1 / (grey)^2."""
    spread = spread_of(residual, both)
    # correlated differences: a px has less information than an independent sample
    unit = np.float32((spread * 2 * np.sqrt(np.pi) * FINE_SIGMA) ** -2)
    return np.asarray(tukey_weight(residual, spread) * (unit * both), np.float32)


@lru_cache(maxsize=8)  # two sides of two levels, of a few videos
def cell_sums_matrix(length: int) -> ArrayF32:
    """(8, length): matrix that sums a column of px up in slightly overlapping cells."""
    side, sigma = NODES - 1, CELL_REACH * FINER
    small = cv2.resize(np.eye(length), (length, FINER * side), interpolation=cv2.INTER_AREA)
    kernel = cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma)
    smooth = cv2.sepFilter2D(small, -1, np.ones((1, 1)), kernel)
    cells = cv2.resize(smooth, (length, side), interpolation=cv2.INTER_AREA)
    return np.asarray(cells * (length / side), np.float32)
