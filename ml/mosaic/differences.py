"""Differences of grey between two views: how far they spread, and what of them counts."""

from __future__ import annotations

import numpy as np

from ml.types import ArrayBool, ArrayF32

TUKEY = 4.0
"""Spreads of the differences from which on a px has no weight."""

SPREAD_POINTS = 1_500
"""Enough differences to know their spread; the median of more is the same and costs time."""


def spread_of(lack: ArrayF32, both: ArrayBool) -> float:
    """Deviation of the differences of two views, by the median; at least 1e-3."""
    where = np.flatnonzero(both)
    some = lack.ravel()[where[:: max(1, len(where) // SPREAD_POINTS)]]
    return max(1.4826 * _median(np.abs(some - np.float32(_median(some)))), 1e-3)


def _median(values: ArrayF32) -> float:
    """As NumPy's, of at least one finite value, in a fraction of its time."""
    half = len(values) // 2
    parted = np.partition(values, half)
    if len(values) % 2:
        return float(parted[half])
    return 0.5 * (float(parted[:half].max()) + float(parted[half]))


def tukey_weight(lack: ArrayF32, spread: float) -> ArrayF32:
    """Tukey's weight of each difference, in [0, 1]."""
    far = np.minimum(np.square(lack * np.float32(1 / (TUKEY * spread))), 1)
    return np.asarray(np.square(1 - far), np.float32)
