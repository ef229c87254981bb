"""Validation of the points passed to a descriptor."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayBool, ArrayF32


def checked_points(xy: ArrayF32, response: ArrayF32) -> ArrayF32:
    """Convert points to (N, 2) float32.

    Raises:
        ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
    """
    points = np.asarray(xy, np.float32)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ShapeError("xy", expected="(N, 2)", actual=str(points.shape))
    if np.shape(response) != (len(points),):
        raise ShapeError("response", expected=f"({len(points)},)", actual=str(np.shape(response)))
    if not np.isfinite(points).all():
        raise ShapeError("xy", expected="finite pixels", actual="NaN or infinity")
    return points


def inside_image(xy: ArrayF32, shape: tuple[int, ...]) -> ArrayBool:
    """Mask (N,) bool of the points inside an image of shape (H, W[, C])."""
    height, width = shape[:2]
    return np.asarray(((xy >= 0) & (xy <= (width - 1, height - 1))).all(axis=1), np.bool_)
