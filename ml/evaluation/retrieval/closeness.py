"""How often a search calls its nearest close, by the calibration of an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.answers.calibration import Calibration
from ml.types import ArrayF32


@dataclass(frozen=True, slots=True)
class CalledClose:
    """How often a search calls its nearest close, by a calibration for that many regions.

    Attributes:
        found: share of queries whose nearest right answer is called close.
        unrelated: share of queries whose nearest unrelated region is called close, among as many
            as their own gallery holds, drawn at random.
    """

    found: float
    unrelated: float


def is_close(vector: ArrayF32, others: ArrayF32, searched: int, calibration: Calibration) -> bool:
    """Whether the nearest of ``others`` (N, D) to ``vector`` (D,) is called close.

    Args:
        searched: number of regions of which it is the nearest.
    """
    if not len(others):
        return False
    away = np.nan_to_num(others - vector, nan=np.inf)
    smallest = float(np.linalg.norm(away, axis=1).min())
    return not calibration.says_nothing_close(smallest, searched)


def drawn(others: ArrayF32, count: int, *seed: int) -> ArrayF32:
    """``count`` rows of ``others`` (N, D) at random, or all where there are fewer."""
    return others[np.random.default_rng(seed).permutation(len(others))[:count]]
