"""Centroids of the inverted lists: a two-level k-means, and assignment of vectors to centroids.

The centroids are grouped, with as many groups as the root of their number. A vector is compared
with the groups, then with the centroids of the nearest few: a tenth of the work of a comparison
with all. If the nearest centroid is missed, the one found is about as near.
"""

from __future__ import annotations

import faiss
import numpy as np

from ml.types import ArrayF32, ArrayI64

ROUNDS, SEED = 10, 1  # of k-means: the lists need no better optimum
_LLOYD_ROUNDS = 2  # over all centroids, after k-means within the groups
POINTS = 256
"""Largest number of training vectors per centroid, the default of FAISS."""
_MAX_UNGROUPED = 256
"""Up to this many centroids, groups save no time."""
_SEARCHED_GROUPS = 4
"""Groups that an assignment searches: of ten million vectors of the benchmark, 99.8 % of a sample
got their nearest centroid with 2, all with 4."""


class Centroids:
    """Centroids (L, D) float32, grouped for assignment."""

    def __init__(self, centroids: ArrayF32) -> None:
        self.centroids = centroids
        n_groups = int(np.sqrt(len(centroids))) if len(centroids) > _MAX_UNGROUPED else 1
        self._groups = _flat(kmeans(centroids, n_groups))
        _, group_of = self._groups.search(centroids, 1)
        self._members: list[ArrayI64] = [
            np.flatnonzero(group_of[:, 0] == n) for n in range(n_groups)
        ]
        self._searched = [_flat(centroids[members]) for members in self._members]

    def nearest(self, vectors: ArrayF32) -> ArrayI64:
        """Index (N,) of the centroid of each of ``vectors`` (N, D)."""
        n_searched = min(_SEARCHED_GROUPS, len(self._members))
        _, groups = self._groups.search(vectors, n_searched)
        order = np.argsort(groups, axis=None, kind="stable")
        starts = np.searchsorted(groups.ravel()[order], np.arange(len(self._members) + 1))
        best = np.full(len(vectors), np.inf, dtype=np.float32)
        nearest = np.zeros(len(vectors), dtype=np.int64)
        for n, (members, searched) in enumerate(zip(self._members, self._searched, strict=True)):
            rows = order[starts[n] : starts[n + 1]] // n_searched
            if not len(rows) or not len(members):
                continue
            squared, nearest_member = searched.search(vectors[rows], 1)
            is_nearer = squared[:, 0] < best[rows]
            rows = rows[is_nearer]
            best[rows], nearest[rows] = squared[is_nearer, 0], members[nearest_member[is_nearer, 0]]
        return nearest


def fit_centroids(sample: ArrayF32, count: int) -> Centroids:
    """Fit up to ``count`` centroids to a sample (S, D) of at least ``count`` vectors."""
    if count <= _MAX_UNGROUPED:
        return Centroids(kmeans(sample, count))
    groups = _flat(kmeans(sample, int(np.sqrt(count))))
    _, group_of = groups.search(sample, 1)
    in_group = np.bincount(group_of[:, 0], minlength=groups.ntotal)
    parts = [
        kmeans(sample[group_of[:, 0] == n], share)
        for n, share in enumerate(_allocate(in_group, count))
        if share
    ]
    centroids = Centroids(np.concatenate(parts))
    for _ in range(_LLOYD_ROUNDS):
        centroids = Centroids(_lloyd_step(centroids, sample))
    return centroids


def _allocate(sizes: ArrayI64, count: int) -> ArrayI64:
    """Split ``count`` over groups (G,) in proportion to their sizes, at most these."""
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact).astype(np.int64)
    rounded_up = np.argsort(shares - exact, kind="stable")[: count - int(shares.sum())]
    shares[rounded_up] += 1
    return np.minimum(shares, sizes)


def _lloyd_step(centroids: Centroids, sample: ArrayF32) -> ArrayF32:
    """Move each centroid to the mean of its vectors; one without vectors stays."""
    group_of = centroids.nearest(sample)
    order = np.argsort(group_of, kind="stable")
    nonempty, starts = np.unique(group_of[order], return_index=True)
    sums = np.add.reduceat(sample[order], starts, axis=0)
    moved = centroids.centroids.copy()
    moved[nonempty] = sums / np.diff([*starts, len(order)])[:, None].astype(np.float32)
    return moved


def kmeans(vectors: ArrayF32, count: int) -> ArrayF32:
    """Centroids (count, D) by seeded k-means; ``vectors`` if there are no more than ``count``."""
    vectors = np.ascontiguousarray(vectors)
    if count >= len(vectors):
        return vectors
    clustering = faiss.Kmeans(
        vectors.shape[1],
        count,
        niter=ROUNDS,
        seed=SEED,
        max_points_per_centroid=POINTS,
        min_points_per_centroid=1,
    )
    clustering.train(vectors)
    return np.asarray(clustering.centroids, dtype=np.float32)


def _flat(vectors: ArrayF32) -> faiss.IndexFlatL2:
    flat = faiss.IndexFlatL2(vectors.shape[1])
    flat.add(np.ascontiguousarray(vectors))
    return flat
