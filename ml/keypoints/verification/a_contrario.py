"""Chance or not: the number of false alarms of matches that agree, and how much they cover."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ml.types import ArrayF64

CELLS_A_SIDE = 16
"""Coverage is counted over a grid of so many cells along the longer side."""


def log10_false_alarms(
    agreeing: npt.ArrayLike,
    matches: npt.ArrayLike,
    *,
    sample: int,
    share: npt.ArrayLike,
    models: float = 1.0,
) -> ArrayF64:
    """log10 of the number of false alarms (NFA) of ``agreeing`` of ``matches`` by pure chance.

    NFA = models (n - s) C(n, k) C(k, s) share^(k - s): the expected number of groups of k matches
    that agree so well when partners fall anywhere at random; n matches, k of them agreeing (the
    sample included), s those that a model is made of, ``share`` the chance that a random partner
    agrees (for a point in a disc: its area over the image's; for an epipolar band: its area over
    the image's), ``models`` solutions a sample times trials. Below 0 (NFA < 1) is meaningful.

    Source: Moisan and Stival 2004, section 3 (eq. 10), for the epipolar constraint; the disc of a
    planar map as in Moisan, Moulon and Monasse 2012, eq. 9.
    """
    k, n = np.asarray(agreeing, np.float64), np.asarray(matches, np.float64)
    alpha = np.clip(np.asarray(share, np.float64), 1e-12, 1.0)
    spare = np.maximum(k - sample, 0.0)
    choices = _log_binomial(n, k) + _log_binomial(np.maximum(k, sample), float(sample))
    log_nfa = np.log(models) + np.log(np.maximum(n - sample, 1.0)) + choices + spare * np.log(alpha)
    result: ArrayF64 = np.where(k > sample, log_nfa, np.inf) / np.log(10.0)
    return result


def covered_cells(xy: npt.NDArray[np.floating], shape: tuple[int, int]) -> int:
    """How many cells of a square grid, 16 along the longer side, hold a point."""
    if not len(xy):
        return 0
    cell_px = max(shape) / CELLS_A_SIDE
    index = np.floor(np.asarray(xy) / cell_px).astype(np.int64)
    return len(np.unique(index, axis=0))


def _log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> npt.NDArray[np.float64]:
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1))
