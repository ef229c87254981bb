"""Matching of descriptors by nearest neighbours, threshold, ratio test or mutual check."""

from __future__ import annotations

import numpy as np

from ml.errors import BadInputError, ShapeError, UnknownNameError
from ml.keypoints.device import gpu_compute
from ml.types import ArrayBool, ArrayF32, ArrayI64

STRATEGY_NAMES: tuple[str, ...] = ("nn", "nnt", "ratio", "mutual")
BLOCK_ROWS = 2048
"""Rows of a per block: 2048 x 20,000 float32 distances are 160 MB."""


def match_descriptors(
    a: ArrayF32,
    b: ArrayF32,
    *,
    strategy: str = "mutual",
    threshold: float | None = None,
    ratio: float | None = None,
) -> tuple[ArrayI64, ArrayF32]:
    """Match each row of ``a`` to a row of ``b`` by Euclidean distance.

    ``nn`` returns the nearest row of b for each row of a; ``nnt`` those nearer than ``threshold``;
    ``ratio`` those with d1 < ratio * d2; ``mutual`` mutual nearest neighbours. ``threshold`` and
    ``ratio`` can be added to any strategy. Zero rows never match. Ties are resolved to the lower
    row on a CPU.

    Args:
        a: (N, D) float32.
        b: (M, D) float32.
        strategy: One of ``STRATEGY_NAMES``.
    Returns:
        pairs: (K, 2) int64, rows of a and b, ordered by row of a.
        distance: (K,) float32.
    Raises:
        UnknownNameError: Unknown strategy.
        BadInputError: ``nnt`` without a threshold, or ``ratio`` without a ratio.
        ShapeError: Not two-dimensional, different D, or not finite.
    Source: graph-ssl-endoscopic-matching, section 4.3 (NN, NNT); Lowe 2004, section 7.1 (ratio).
    """
    _check(a, b, strategy, threshold, ratio)
    pairs, first, second, is_mutual = _candidates(a, b)
    keep = is_mutual if strategy == "mutual" else np.ones(len(pairs), np.bool_)
    if threshold is not None:
        keep = keep & (first < threshold)
    if ratio is not None:
        keep = keep & (first < ratio * second)
    return pairs[keep], first[keep]


def match_mutual(a: ArrayF32, b: ArrayF32, *, ratio: float) -> tuple[ArrayI64, ArrayF32]:
    """Find mutual nearest neighbours with d1 < ratio * d2, and their scores.

    Args:
        a: (N, D) float32; zero rows never match.
        b: (M, D) float32.
    Returns:
        pairs: (K, 2) int64, rows of a and b.
        score: (K,) float32, 1 - d1 / d2 in [0, 1]; 1 if b has a single row.
    Raises:
        ShapeError: Not two-dimensional, different D, or not finite.
    """
    _check(a, b, "mutual", None, ratio)
    pairs, first, second, is_mutual = _candidates(a, b)
    keep = is_mutual & (first < ratio * second)
    score = 1.0 - first[keep] / np.maximum(second[keep], 1e-6)
    return pairs[keep], score.astype(np.float32)


def _candidates(a: ArrayF32, b: ArrayF32) -> tuple[ArrayI64, ArrayF32, ArrayF32, ArrayBool]:
    """Nearest row of b for each row of a, first and second distance, and a mutual mask."""
    rows_a, rows_b = np.flatnonzero(a.any(axis=1)), np.flatnonzero(b.any(axis=1))
    if not len(rows_a) or not len(rows_b):
        empty = np.zeros(0, np.float32)
        return np.zeros((0, 2), np.int64), empty, empty, np.zeros(0, np.bool_)
    is_complete_a, is_complete_b = len(rows_a) == len(a), len(rows_b) == len(b)
    nearest, first, second, nearest_of_b = _nearest(
        a if is_complete_a else a[rows_a], b if is_complete_b else b[rows_b]
    )
    is_mutual: ArrayBool = nearest_of_b[nearest] == np.arange(len(rows_a))
    pairs = np.stack([rows_a, rows_b[nearest]], axis=1).astype(np.int64)
    return pairs, first, second, is_mutual


def _nearest(a: ArrayF32, b: ArrayF32) -> tuple[ArrayI64, ArrayF32, ArrayF32, ArrayI64]:
    """See ``nearest_on``, the equivalent on a GPU."""
    compute = gpu_compute()
    if compute is not None:
        from ml.keypoints.device.nearest import nearest_on

        return nearest_on(compute, a, b)
    n, m = len(a), len(b)
    nearest = np.empty(n, np.int64)
    first, second = np.empty(n, np.float32), np.full(n, np.inf, np.float32)
    nearest_of_b, best_of_b = np.zeros(m, np.int64), np.full(m, np.inf, np.float32)
    length_b = np.einsum("md,md->m", b, b)
    for start in range(0, n, BLOCK_ROWS):
        block = a[start : start + BLOCK_ROWS]
        squared = np.einsum("nd,nd->n", block, block)[:, None] + length_b - 2.0 * (block @ b.T)
        np.maximum(squared, 0.0, out=squared)
        rows = np.arange(len(block))
        column_best = squared.argmin(axis=0)
        column_value = squared[column_best, np.arange(m)]
        better = column_value < best_of_b
        nearest_of_b[better], best_of_b[better] = column_best[better] + start, column_value[better]
        best = squared.argmin(axis=1)
        nearest[start : start + len(block)] = best
        first[start : start + len(block)] = np.sqrt(squared[rows, best])
        if m > 1:
            squared[rows, best] = np.inf
            second[start : start + len(block)] = np.sqrt(squared.min(axis=1))
    return nearest, first, second, nearest_of_b


def _check(
    a: ArrayF32, b: ArrayF32, strategy: str, threshold: float | None, ratio: float | None
) -> None:
    if strategy not in STRATEGY_NAMES:
        raise UnknownNameError("matching strategy", strategy, list(STRATEGY_NAMES))
    if strategy == "nnt" and threshold is None:
        raise BadInputError("strategy 'nnt' needs a threshold, got none")
    if strategy == "ratio" and ratio is None:
        raise BadInputError("strategy 'ratio' needs a ratio, got none")
    for name, rows in (("a", a), ("b", b)):
        if rows.ndim != 2:
            raise ShapeError(name, expected="(N, D) descriptors", actual=str(rows.shape))
        if not np.isfinite(rows).all():
            raise ShapeError(name, expected="finite descriptors", actual="NaN or infinity")
    if a.shape[1] != b.shape[1]:
        raise ShapeError("b", expected=f"(M, {a.shape[1]}) like a", actual=str(b.shape))
