"""Shares of searches whose nearest hit is called close by the calibration of an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.ranking.calibration import Calibration
from ml.types import ArrayF32


@dataclass(frozen=True, slots=True)
class CalledClose:
    """Shares of queries whose nearest hit is called close.

    Attributes:
        found: of the nearest right answer.
        unrelated: of the nearest of as many random unrelated regions as the gallery holds.
    """

    found: float
    unrelated: float


def is_close(vector: ArrayF32, gallery: ArrayF32, searched: int, calibration: Calibration) -> bool:
    """Return whether the nearest of ``gallery`` (N, D) to ``vector`` (D,) is called close.

    Args:
        searched: number of regions of which it is the nearest.
    """
    if not len(gallery):
        return False
    differences = np.nan_to_num(gallery - vector, nan=np.inf)
    smallest = float(np.linalg.norm(differences, axis=1).min())
    return not calibration.is_nothing_close(smallest, searched)


def drawn(vectors: ArrayF32, count: int, *seed: int) -> ArrayF32:
    """Draw ``count`` rows of ``vectors`` (N, D), or all if there are fewer."""
    return vectors[np.random.default_rng(seed).permutation(len(vectors))[:count]]
