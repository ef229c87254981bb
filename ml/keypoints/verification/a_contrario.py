"""A-contrario validation: the number of false alarms of consistent matches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ml.types import ArrayF64

MIN_SHARE = 1e-12
"""Lower bound of a probability in logarithms."""


def log10_false_alarms(
    agreeing: npt.ArrayLike,
    matches: npt.ArrayLike,
    *,
    sample: int,
    share: npt.ArrayLike,
    models: float = 1.0,
) -> ArrayF64:
    """log10 of the number of false alarms (NFA) of consistent matches.

    NFA = models (n - s) C(n, k) C(k, s) share^(k - s), the expected number of groups of k
    consistent matches if partners are random. Negative values (NFA < 1) are meaningful.

    Args:
        agreeing: (N,), number k of consistent matches, including the sample.
        matches: (N,), number n of matches.
        sample: Number s of matches that determine a model.
        share: (N,), probability that a random partner is consistent: area of the disc (of a planar
            map) or of the epipolar band relative to the area of possible partners.
        models: Number of tested models.
    Returns:
        (N,) float64, or the broadcast shape; infinite if k <= s.
    Source: Moisan and Stival 2004, section 3 (eq. 10), for the epipolar constraint; the disc of a
        planar map as in Moisan, Moulon and Monasse 2012, eq. 9.
    """
    k, n = np.asarray(agreeing, np.float64), np.asarray(matches, np.float64)
    alpha = np.clip(np.asarray(share, np.float64), MIN_SHARE, 1.0)
    excess = np.maximum(k - sample, 0.0)
    choices = _log_binomial(n, k) + _log_binomial(np.maximum(k, sample), float(sample))
    log_nfa = (
        np.log(models) + np.log(np.maximum(n - sample, 1.0)) + choices + excess * np.log(alpha)
    )
    result: ArrayF64 = np.where(k > sample, log_nfa, np.inf) / np.log(10.0)
    return result


def _log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> npt.NDArray[np.float64]:
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1))
