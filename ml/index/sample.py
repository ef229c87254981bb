"""The exact answers of a few queries, from vectors that come a chunk at a time."""

from __future__ import annotations

import numpy as np

from ml.index.exact import Found, exact_distances, nearest
from ml.types import ArrayF32, ArrayF64, ArrayI64

_MARGIN = 16
"""Rows kept past k: the products they are chosen by are rounded differently from distances."""


class ExactSample:
    """What an index is verified against: the ``k`` nearest of each query, whatever the engine."""

    def __init__(self, queries: ArrayF32, k: int) -> None:
        """``queries``: (Q, D)."""
        self._queries, self._k = queries.astype(np.float64), k
        self._ids: list[ArrayI64] = [np.empty(0, dtype=np.int64) for _ in queries]
        self._vectors: list[ArrayF32] = [np.empty((0, queries.shape[1]), np.float32)] * len(queries)

    def add(self, ids: ArrayI64, vectors: ArrayF32) -> None:
        """Take ``ids`` (N,) and ``vectors`` (N, D) into account."""
        wide: ArrayF64 = vectors.astype(np.float64)
        squared = np.square(wide).sum(axis=1) - 2 * self._queries @ wide.T
        kept = min(self._k + _MARGIN, len(ids))
        for n, row in enumerate(squared):
            near = np.argpartition(row, kept - 1)[:kept]
            all_ids = np.concatenate([self._ids[n], ids[near]])
            all_vectors = np.concatenate([self._vectors[n], vectors[near]])
            best, _ = self._nearest(n, all_ids, all_vectors, self._k + _MARGIN)
            order = np.argsort(all_ids)
            places = order[np.searchsorted(all_ids, best, sorter=order)]
            self._ids[n], self._vectors[n] = all_ids[places], all_vectors[places]

    def found(self) -> list[Found]:
        """Ids and distances of each query's ``k`` nearest, ties by id."""
        return [self._nearest(n, ids, self._vectors[n], self._k) for n, ids in enumerate(self._ids)]

    def _nearest(self, n: int, ids: ArrayI64, vectors: ArrayF32, k: int) -> Found:
        return nearest(ids, exact_distances(self._queries[n], vectors), k)
