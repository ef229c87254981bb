"""Grey differences between two views: their spread and robust weights."""

from __future__ import annotations

import numpy as np

from ml.types import ArrayBool, ArrayF32

TUKEY = 4.0
"""Spreads of the differences from which on a px has no weight."""

SPREAD_POINTS = 1_500
"""Enough differences to know their spread; the median of more is the same and costs time."""


def spread_of(residual: ArrayF32, both: ArrayBool) -> float:
    """Standard deviation of the differences of two views, by the median; at least 1e-3."""
    indices = np.flatnonzero(both)
    sample = residual.ravel()[indices[:: max(1, len(indices) // SPREAD_POINTS)]]
    return max(1.4826 * _median(np.abs(sample - np.float32(_median(sample)))), 1e-3)


def _median(values: ArrayF32) -> float:
    """Median of at least one finite value, faster than NumPy's."""
    half = len(values) // 2
    parted = np.partition(values, half)
    if len(values) % 2:
        return float(parted[half])
    return 0.5 * (float(parted[:half].max()) + float(parted[half]))


def tukey_weight(residual: ArrayF32, spread: float) -> ArrayF32:
    """Tukey's weight of each difference, in [0, 1]."""
    ratio = np.minimum(np.square(residual * np.float32(1 / (TUKEY * spread))), 1)
    return np.asarray(np.square(1 - ratio), np.float32)
