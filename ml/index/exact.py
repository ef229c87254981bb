"""Exact search and merging of results, also of vectors that no index file has yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ml.index.selection import Selection
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

SearchResult = tuple[ArrayI64, ArrayF64]
"""(M,) ids and (M,) distances, nearest first, ties by id."""

Allowed = npt.ArrayLike | Selection
"""Permitted ids: (M,), or a ``Selection`` prepared for many searches."""

_CHUNK_ROWS = 16_384
"""Rows per chunk, so that a scan of a mapped file needs little memory."""


def exact_distances(q: ArrayF32 | ArrayF64, vectors: ArrayF32 | ArrayF64) -> ArrayF64:
    """Euclidean distances of ``q`` (D,) to ``vectors`` (N, D): (N,) float64.

    Computed in float64 row by row, so that equal vectors get equal distances regardless of their
    neighbours and the order of ties is reproducible.
    """
    origin = q.astype(np.float64)
    if len(vectors) <= _CHUNK_ROWS:
        return _distances(origin, vectors)
    distance = np.empty(len(vectors), dtype=np.float64)
    for start in range(0, len(vectors), _CHUNK_ROWS):
        part = vectors[start : start + _CHUNK_ROWS]
        distance[start : start + _CHUNK_ROWS] = _distances(origin, part)
    return distance


def _distances(origin: ArrayF64, vectors: ArrayF32 | ArrayF64) -> ArrayF64:
    part = np.subtract(vectors, origin, dtype=np.float64)
    np.square(part, out=part)
    squared = np.add.reduce(part, axis=1)
    np.sqrt(squared, out=squared)
    return squared


def permitted_mask(
    ids: ArrayI64, allowed: Allowed | None = None, excluded: npt.ArrayLike | None = None
) -> ArrayBool:
    """Mask (N,) bool of the ``ids`` in ``allowed`` (None: all) and not in ``excluded``."""
    mask = np.ones(len(ids), dtype=np.bool_)
    if isinstance(allowed, Selection):
        mask &= allowed.contains(ids)
    elif allowed is not None:
        mask &= np.isin(ids, np.asarray(allowed, dtype=np.int64))
    if excluded is not None:
        mask &= ~np.isin(ids, np.asarray(excluded, dtype=np.int64))
    return mask


def nearest(ids: ArrayI64, distance: ArrayF64, k: int) -> SearchResult:
    """The ``k`` entries of smallest distance, ties ordered by id, also across the cut."""
    if len(ids) > 4 * k:
        bound = np.partition(distance, k - 1)[k - 1]
        near = np.flatnonzero(distance <= bound)
        ids, distance = ids[near], distance[near]
    order = np.lexsort((ids, distance))[:k]
    return ids[order], distance[order]


def nearest_of_ascending(ids: ArrayI64, distance: ArrayF64, k: int) -> SearchResult:
    """``nearest`` for ascending ids: one stable sort by distance also orders ties by id."""
    if len(ids) > 4 * k:
        near = np.flatnonzero(distance <= np.partition(distance, k - 1)[k - 1])
        near = near[distance[near].argsort(kind="stable")[:k]]
    else:
        near = distance.argsort(kind="stable")[:k]
    return ids[near], distance[near]


def exact_search(
    q: ArrayF32,
    ids: ArrayI64,
    vectors: ArrayF32,
    k: int,
    *,
    allowed: Allowed | None = None,
    excluded: npt.ArrayLike | None = None,
) -> SearchResult:
    """Search all vectors exactly.

    Args:
        q: (D,).
        ids, vectors: (N,) and (N, D).
        allowed: (M,) ids or a selection; None permits all.
        excluded: (M,) ids.
    Returns:
        Up to ``k`` ids and Euclidean distances, nearest first, ties by id.
    """
    if allowed is not None or excluded is not None:
        mask = permitted_mask(ids, allowed, excluded)
        ids, vectors = ids[mask], vectors[mask]
    return nearest(ids, exact_distances(q, vectors), k)


def exact_merge(parts: Sequence[SearchResult], k: int) -> SearchResult:
    """Merge the results of several searches into one.

    Each part must contain the ``k`` nearest of its source. An id in several parts gets its smallest
    distance.

    Returns:
        Up to ``k`` ids and distances, nearest first, ties by id.
    """
    ids = np.concatenate([np.empty(0, dtype=np.int64), *(part[0] for part in parts)])
    distance = np.concatenate([np.empty(0, dtype=np.float64), *(part[1] for part in parts)])
    order = np.lexsort((ids, distance))
    ids, distance = ids[order], distance[order]
    _, first = np.unique(ids, return_index=True)
    first = np.sort(first)[:k]
    return ids[first], distance[first]


def squared_distances(a: ArrayF64, b: ArrayF64) -> ArrayF64:
    """Squared distances (N, M) between rows (N, D) and (M, D), by one matrix product.

    Their order is that of exact distances, except for pairs that differ in the last digits.
    """
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * (a @ b.T)
    return np.asarray(np.maximum(squares, 0.0))
