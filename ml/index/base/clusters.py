"""Centres of inverted lists, and which of thousands is nearest to a vector.

Both go by way of groups of centres, as many as the root of their number: a vector is held against
the groups, then against the centres in the nearest few. That is some tenth of the work of looking
at every centre, and what it misses is a centre about as near as the one it found.
"""

from __future__ import annotations

import faiss
import numpy as np

from ml.types import ArrayF32, ArrayI64

ROUNDS, SEED = 10, 1  # of a k-means: few, for the lists only say where to look
_POLISHED = 2  # rounds over all centres together, once the groups have theirs
POINTS = 256
"""Vectors per centre that a k-means looks at, at most: FAISS' own bound."""
_AT_ONCE_MOST = 256
"""So few centres are made and looked at together: the way by groups saves nothing."""
_GROUPS_LOOKED_AT = 4
"""Groups whose centres are looked at: of ten million vectors of the bench 99.8 % of a sample got
their nearest centre with 2, all with 4."""


class Centres:
    """Centres (L, D) and the groups they are found by."""

    def __init__(self, centres: ArrayF32) -> None:
        self.centres = centres
        n_groups = int(np.sqrt(len(centres))) if len(centres) > _AT_ONCE_MOST else 1
        self._groups = _flat(means(centres, n_groups))
        _, of = self._groups.search(centres, 1)
        self._members: list[ArrayI64] = [np.flatnonzero(of[:, 0] == n) for n in range(n_groups)]
        self._searched = [_flat(centres[members]) for members in self._members]

    def nearest(self, vectors: ArrayF32) -> ArrayI64:
        """(N,) the centre of each of ``vectors`` (N, D)."""
        looked_at = min(_GROUPS_LOOKED_AT, len(self._members))
        _, groups = self._groups.search(vectors, looked_at)
        order = np.argsort(groups, axis=None, kind="stable")
        starts = np.searchsorted(groups.ravel()[order], np.arange(len(self._members) + 1))
        best = np.full(len(vectors), np.inf, dtype=np.float32)
        found = np.zeros(len(vectors), dtype=np.int64)
        for n, (members, searched) in enumerate(zip(self._members, self._searched, strict=True)):
            rows = order[starts[n] : starts[n + 1]] // looked_at
            if not len(rows) or not len(members):
                continue
            squared, at = searched.search(vectors[rows], 1)
            is_nearer = squared[:, 0] < best[rows]
            rows = rows[is_nearer]
            best[rows], found[rows] = squared[is_nearer, 0], members[at[is_nearer, 0]]
        return found


def centres_of(sample: ArrayF32, count: int) -> Centres:
    """Up to ``count`` centres of a sample (S, D) of vectors; S is at least ``count``."""
    if count <= _AT_ONCE_MOST:
        return Centres(means(sample, count))
    groups = _flat(means(sample, int(np.sqrt(count))))
    _, of = groups.search(sample, 1)
    in_group = np.bincount(of[:, 0], minlength=groups.ntotal)
    parts = [
        means(sample[of[:, 0] == n], share)
        for n, share in enumerate(_shared_out(in_group, count))
        if share
    ]
    centres = Centres(np.concatenate(parts))
    for _ in range(_POLISHED):
        centres = Centres(_moved(centres, sample))
    return centres


def _shared_out(sizes: ArrayI64, count: int) -> ArrayI64:
    """(G,) how many of ``count`` go to each group: in proportion to its size, and at most that."""
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact).astype(np.int64)
    left = np.argsort(shares - exact, kind="stable")[: count - int(shares.sum())]
    shares[left] += 1
    return np.minimum(shares, sizes)


def _moved(centres: Centres, sample: ArrayF32) -> ArrayF32:
    """Each centre in the middle of what is nearest to it; one that has nothing stays."""
    of = centres.nearest(sample)
    order = np.argsort(of, kind="stable")
    held, starts = np.unique(of[order], return_index=True)
    sums = np.add.reduceat(sample[order], starts, axis=0)
    moved = centres.centres.copy()
    moved[held] = sums / np.diff([*starts, len(order)])[:, None].astype(np.float32)
    return moved


def means(vectors: ArrayF32, count: int) -> ArrayF32:
    """(count, D) by k-means, the same from the same vectors; the vectors if no more."""
    vectors = np.ascontiguousarray(vectors)
    if count >= len(vectors):
        return vectors
    made = faiss.Kmeans(
        vectors.shape[1],
        count,
        niter=ROUNDS,
        seed=SEED,
        max_points_per_centroid=POINTS,
        min_points_per_centroid=1,
    )
    made.train(vectors)
    return np.asarray(made.centroids, dtype=np.float32)


def _flat(vectors: ArrayF32) -> faiss.IndexFlatL2:
    flat = faiss.IndexFlatL2(vectors.shape[1])
    flat.add(np.ascontiguousarray(vectors))
    return flat
