"""Conformal bound on the distance of a piece of tissue to its most similar one on the slide."""

from __future__ import annotations

import math

import numpy as np

from ml.index.exact import exact_distances
from ml.types import ArrayBool, ArrayF32, ArrayF64

FALSE_SHARE = 0.05
"""Share of the slide's own tissue that is falsely reported to have nothing close elsewhere."""
MIN_SAMPLES = 39  # twice the minimum for the false share, where the farthest sample would decide
MAX_QUERIES = 200  # pieces; more change the bound by less than its standard deviation


def nearest_elsewhere(vectors: ArrayF32, elsewhere: ArrayBool) -> ArrayF64:
    """Distances of the first pieces to the most similar piece elsewhere.

    Args:
        vectors: (N, D) of pieces of one slide.
        elsewhere: (Q, N) bool, Q at most N: which pieces are at another place than each of the
            first Q.
    Returns:
        (Q,) Euclidean distances; infinite if no piece is elsewhere.
    """
    distances = np.full(len(elsewhere), np.inf)
    for at, is_other in enumerate(elsewhere):
        if is_other.any():
            distances[at] = exact_distances(vectors[at], vectors[is_other]).min()
    return distances


def conformal_bound(nearest: ArrayF64, *, false_share: float = FALSE_SHARE) -> float | None:
    """Distance bound beyond which a region has nothing close on the slide.

    The bound is the ``ceil((Q + 1) (1 - false_share))``-th smallest of ``nearest``: a further piece
    drawn like those is beyond it with a probability of at most ``false_share``.

    Args:
        nearest: (Q,) distances, see ``nearest_elsewhere``.
    Returns:
        A distance; None if fewer than ``MIN_SAMPLES`` are known.
    Source: V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World" (2005),
        conformal prediction, ch. 2; the score is the distance to the nearest neighbour.
    """
    distances = np.sort(nearest[np.isfinite(nearest)])
    if len(distances) < MIN_SAMPLES:
        return None
    rank = math.ceil((len(distances) + 1) * (1 - false_share))
    return float(distances[min(rank, len(distances)) - 1])
