"""Depth of a still: a smooth surface drawn at random."""

from __future__ import annotations

import cv2
import numpy as np

from ml.types import ArrayF64


def synthetic_depth(
    rng: np.random.Generator, shape: tuple[int, int], *, relief: float = 0.35, waves: int = 4
) -> ArrayF64:
    """Draw a smooth surface: a tilted plane with a low-frequency relief, median 1.

    The correspondence of a view made from it is exact; only the parallax is invented.

    Args:
        relief: typical deviation of the surface from its median (log depth), at most twice that.
        waves: finest period, as a count over the longer side.
    Returns:
        (H, W) float64, positive.
    """
    height, width = shape
    coarse = rng.normal(0, 1, (waves + 1, waves + 1))
    surface = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    surface = surface + rng.normal(0, 1) * x + rng.normal(0, 1) * y
    surface = (surface - np.median(surface)) / max(float(np.abs(surface).max()), 1e-9)
    result: ArrayF64 = np.exp(relief * surface)
    return result
