"""How near the like of a piece of tissue usually is on its own slide."""

from __future__ import annotations

import math

import numpy as np

from ml.index.exact import exact_distances
from ml.types import ArrayBool, ArrayF32, ArrayF64

FALSE_SHARE = 0.05
"""Of the slide's own tissue that is said to have nothing close elsewhere."""
FEWEST = 39  # twice as many as the false share needs: of fewer, the farthest alone decides
ASKED_MOST = 200  # pieces; the bound of more moves by less than its own spread


def nearest_elsewhere(vectors: ArrayF32, elsewhere: ArrayBool) -> ArrayF64:
    """How far each of the first pieces is from the piece most like it elsewhere.

    Args:
        vectors: (N, D) of pieces of one slide.
        elsewhere: (Q, N) bool, Q at most N: which pieces are not the same place as each of the
            first Q.
    Returns:
        (Q,) Euclidean distances; infinite if nothing is elsewhere.
    """
    found = np.full(len(elsewhere), np.inf)
    for at, others in enumerate(elsewhere):
        if others.any():
            found[at] = exact_distances(vectors[at], vectors[others]).min()
    return found


def own_bound(nearest: ArrayF64, *, false_share: float = FALSE_SHARE) -> float | None:
    """Beyond this distance from all of a slide, a region has nothing close on it.

    The bound is the ``ceil((Q + 1) (1 - false_share))``-th smallest of ``nearest``: one more
    piece that is drawn as those were lies beyond with a probability of at most ``false_share``.

    Args:
        nearest: (Q,) distances, as of ``nearest_elsewhere``.
    Returns:
        A distance; None if fewer than ``FEWEST`` are known.
    Source: V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World" (2005),
        conformal prediction, ch. 2; the score is the distance to the nearest neighbour.
    """
    known = np.sort(nearest[np.isfinite(nearest)])
    if len(known) < FEWEST:
        return None
    rank = math.ceil((len(known) + 1) * (1 - false_share))
    return float(known[min(rank, len(known)) - 1])
