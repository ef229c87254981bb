"""Exact results of a few queries over vectors that are added in chunks."""

from __future__ import annotations

import numpy as np

from ml.index.exact import SearchResult, exact_distances, nearest
from ml.types import ArrayF32, ArrayF64, ArrayI64

_MARGIN = 16
"""Rows beyond k that are retained, as the products that select them are rounded differently."""


class ExactSample:
    """Reference for verifying an index: the ``k`` nearest of each query by exact search."""

    def __init__(self, queries: ArrayF32, k: int) -> None:
        """``queries``: (Q, D)."""
        self._queries, self._k = queries.astype(np.float64), k
        self._ids: list[ArrayI64] = [np.empty(0, dtype=np.int64) for _ in queries]
        self._vectors: list[ArrayF32] = [np.empty((0, queries.shape[1]), np.float32)] * len(queries)

    def add(self, ids: ArrayI64, vectors: ArrayF32) -> None:
        """Add a chunk of ``ids`` (N,) and ``vectors`` (N, D)."""
        wide: ArrayF64 = vectors.astype(np.float64)
        squared = np.square(wide).sum(axis=1) - 2 * self._queries @ wide.T
        count = min(self._k + _MARGIN, len(ids))
        for n, row in enumerate(squared):
            nearest_rows = np.argpartition(row, count - 1)[:count]
            all_ids = np.concatenate([self._ids[n], ids[nearest_rows]])
            all_vectors = np.concatenate([self._vectors[n], vectors[nearest_rows]])
            best, _ = self._nearest(n, all_ids, all_vectors, self._k + _MARGIN)
            order = np.argsort(all_ids)
            positions = order[np.searchsorted(all_ids, best, sorter=order)]
            self._ids[n], self._vectors[n] = all_ids[positions], all_vectors[positions]

    def found(self) -> list[SearchResult]:
        """Ids and distances of each query's ``k`` nearest, ties by id."""
        return [self._nearest(n, ids, self._vectors[n], self._k) for n, ids in enumerate(self._ids)]

    def _nearest(self, n: int, ids: ArrayI64, vectors: ArrayF32, k: int) -> SearchResult:
        return nearest(ids, exact_distances(self._queries[n], vectors), k)
