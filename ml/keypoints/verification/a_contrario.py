"""Chance or not: the number of false alarms of matches that agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ml.types import ArrayF64

LEAST_SHARE = 1e-12
"""Smaller chances count as this one: zero has no logarithm."""


def log10_false_alarms(
    agreeing: npt.ArrayLike,
    matches: npt.ArrayLike,
    *,
    sample: int,
    share: npt.ArrayLike,
    models: float = 1.0,
) -> ArrayF64:
    """log10 of the number of false alarms (NFA): how often pure chance would agree so well.

    NFA = models (n - s) C(n, k) C(k, s) share^(k - s): the expected number of groups of k matches
    that agree when partners fall anywhere at random. Below 0 (NFA < 1) is meaningful.

    Args:
        agreeing: (N,), k, how many agree, the sample among them. matches: (N,), n, of how many.
        sample: s, how many matches one model is made of.
        share: (N,), the chance that a random partner agrees: the area of the disc (of a planar
            map) or of the epipolar band over that where partners may fall.
        models: how many models were tried.
    Returns:
        (N,) float64, or a shape that the arguments broadcast to; infinite if k <= s.
    Source: Moisan and Stival 2004, section 3 (eq. 10), for the epipolar constraint; the disc of a
        planar map as in Moisan, Moulon and Monasse 2012, eq. 9.
    """
    k, n = np.asarray(agreeing, np.float64), np.asarray(matches, np.float64)
    alpha = np.clip(np.asarray(share, np.float64), LEAST_SHARE, 1.0)
    spare = np.maximum(k - sample, 0.0)
    choices = _log_binomial(n, k) + _log_binomial(np.maximum(k, sample), float(sample))
    log_nfa = np.log(models) + np.log(np.maximum(n - sample, 1.0)) + choices + spare * np.log(alpha)
    result: ArrayF64 = np.where(k > sample, log_nfa, np.inf) / np.log(10.0)
    return result


def _log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> npt.NDArray[np.float64]:
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1))
