"""Guided matching: unmatched key points near their predicted positions."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

CANDIDATES = 8
"""Largest number of candidates for a key point, nearest to the predicted position first; a circle
of three pixels rarely contains more."""

_CHUNK = 8192
"""Pairs of descriptors per chunk: 12 MB at 128 values."""


def guided_matches(
    rows_a: ArrayF32,
    rows_b: ArrayF32,
    xy_b: ArrayF32,
    predicted: ArrayF64,
    radius_px: ArrayF64,
    *,
    ratio: float,
    max_distance: float,
) -> tuple[ArrayI64, ArrayF32]:
    """Match key points of a to those of b near their predicted positions.

    Args:
        rows_a: (N, D) float32, descriptors.
        rows_b: (M, D) float32, descriptors.
        xy_b: (M, 2), positions of b.
        predicted: (N, 2), predicted positions in b.
        radius_px: (N,), search radii.
        ratio: Ratio test among the candidates within the radius.
        max_distance: Upper bound of the descriptor distance of a match.
    Returns:
        pairs: (K, 2) int64, each row of a and of b at most once.
        distance: (K,) float32.
    """
    empty = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    if not len(rows_a) or not len(rows_b):
        return empty
    count = min(CANDIDATES, len(xy_b))
    distance_px, index = cKDTree(xy_b).query(
        predicted, k=count, distance_upper_bound=radius_px.max()
    )
    distance_px, index = (
        distance_px.reshape(len(predicted), count),
        index.reshape(len(predicted), count),
    )
    is_candidate: ArrayBool = np.isfinite(distance_px) & (distance_px <= radius_px[:, None])
    index = np.where(is_candidate, index, 0)
    distance = _distances(rows_a, rows_b, index, is_candidate)
    rows = np.arange(len(predicted))
    best = distance.argmin(axis=1)
    first = distance[rows, best]
    distance[rows, best] = np.inf
    second = distance.min(axis=1)
    keep = (first < max_distance) & (first < ratio * second)
    pairs = np.stack([rows, index[rows, best]], axis=1)[keep].astype(np.int64)
    return _unique_in_b(pairs, first[keep].astype(np.float32))


def _distances(
    rows_a: ArrayF32, rows_b: ArrayF32, index: ArrayI64, is_candidate: ArrayBool
) -> ArrayF64:
    """Descriptor distances (N, K); infinite without a candidate or a descriptor."""
    distance = np.full(index.shape, np.inf)
    described_a, described_b = np.asarray(rows_a.any(axis=1)), np.asarray(rows_b.any(axis=1))
    i, k = np.nonzero(is_candidate & described_a[:, None] & described_b[index])
    for start in range(0, len(i), _CHUNK):
        s = slice(start, start + _CHUNK)
        distance[i[s], k[s]] = np.linalg.norm(rows_a[i[s]] - rows_b[index[i[s], k[s]]], axis=1)
    return distance


def _unique_in_b(pairs: ArrayI64, distance: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """Select the nearest row of a for each row of b."""
    order = np.argsort(distance, kind="stable")
    _, first = np.unique(pairs[order, 1], return_index=True)
    rows = np.sort(order[first])
    return pairs[rows], distance[rows]
