"""A second pass: with the motion known, look again where each unmatched key point must be."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

CANDIDATES = 8
"""Key points of b compared with each of a at most, the nearest to the predicted position: a circle
of three pixels seldom holds more."""

_CHUNK = 8192
"""Pairs of descriptors compared at once: of 128 numbers 12 MB."""


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
        rows_a: (N, D). rows_b: (M, D). xy_b: (M, 2). predicted: (N, 2) positions in b.
        radius_px: (N,) how far to look.
        ratio: the best must be nearer than ratio times the second best *within the radius*.
        max_distance: a match is nearer than this, between descriptors.
    Returns:
        pairs: (K, 2) int64, each row of a and of b at most once. distance: (K,) float32.
    """
    nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    if not len(rows_a) or not len(rows_b):
        return nothing
    count = min(CANDIDATES, len(xy_b))
    apart, index = cKDTree(xy_b).query(predicted, k=count, distance_upper_bound=radius_px.max())
    apart, index = apart.reshape(len(predicted), count), index.reshape(len(predicted), count)
    valid: ArrayBool = np.isfinite(apart) & (apart <= radius_px[:, None])
    index = np.where(valid, index, 0)
    distance = _distances(rows_a, rows_b, index, valid)
    rows = np.arange(len(predicted))
    best = distance.argmin(axis=1)
    first = distance[rows, best]
    distance[rows, best] = np.inf
    second = distance.min(axis=1)
    keep = (first < max_distance) & (first < ratio * second)
    pairs = np.stack([rows, index[rows, best]], axis=1)[keep].astype(np.int64)
    return _one_each(pairs, first[keep].astype(np.float32))


def _distances(rows_a: ArrayF32, rows_b: ArrayF32, index: ArrayI64, valid: ArrayBool) -> ArrayF64:
    """(N, K) Euclidean distances, inf where there is no candidate or no descriptor."""
    distance = np.full(index.shape, np.inf)
    told_a, told_b = np.asarray(rows_a.any(axis=1)), np.asarray(rows_b.any(axis=1))
    i, k = np.nonzero(valid & told_a[:, None] & told_b[index])
    for start in range(0, len(i), _CHUNK):
        s = slice(start, start + _CHUNK)
        distance[i[s], k[s]] = np.linalg.norm(rows_a[i[s]] - rows_b[index[i[s], k[s]]], axis=1)
    return distance


def _one_each(pairs: ArrayI64, distance: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """The nearest row of a for each row of b."""
    order = np.argsort(distance, kind="stable")
    _, first = np.unique(pairs[order, 1], return_index=True)
    kept = np.sort(order[first])
    return pairs[kept], distance[kept]
