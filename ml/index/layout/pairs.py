"""Pairs of vectors closer than a distance, and the nearest of each vector in other groups."""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayI64, Progress, no_progress

_BLOCK_ROWS = 1_024  # rows per range search, which bounds the size of its result
_BUFFER_FACTOR = 8  # size of the buffer relative to ``max_pairs``, before it is reduced
_SLACK = 1e-3
"""Relative tolerance of FAISS' squared distances, which are float32 products: the search radius is
enlarged by it and distances are computed again."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of vectors, nearest first, ties by rows.

    Attributes:
        rows: (P, 2) int64, the lower row first.
        distance: (P,) float32, Euclidean.
        is_cut: There were more pairs than the maximum.
    """

    rows: ArrayI64
    distance: ArrayF32
    is_cut: bool


def neighbours_in_other_groups(
    vectors: ArrayF32,
    groups: ArrayI64,
    k: int,
    progress: Progress = no_progress,
) -> tuple[ArrayI64, ArrayF32]:
    """Find the ``k`` nearest vectors of other groups for each vector, exactly.

    The cost grows with the square of N.

    Args:
        vectors: (N, D) float32.
        groups: (N,) int64, group of each vector.
    Returns:
        Rows (N, k) int64 and distances (N, k) float32; -1 and infinite where there are no more.
    """
    n = len(vectors)
    rows = np.full((n, k), -1, dtype=np.int64)
    distance = np.full((n, k), np.inf, dtype=np.float32)
    if not n:
        return rows, distance
    order = np.argsort(groups, kind="stable")
    sorted_vectors = np.ascontiguousarray(vectors[order], dtype=np.float32)
    starts = np.flatnonzero(np.diff(groups[order], prepend=np.nan))
    for start, end in zip(starts, [*starts[1:], n], strict=True):
        for block in range(start, end, _BLOCK_ROWS):
            progress(100 * block // n, 100, "finding neighbours")
            block_rows = slice(block, min(block + _BLOCK_ROWS, end))
            candidates = [
                _nearest(sorted_vectors[block_rows], sorted_vectors[part], k, part.start)
                for part in (slice(0, start), slice(end, n))
                if part.stop > part.start
            ]
            if not candidates:
                continue
            squared = np.concatenate([distances for distances, _ in candidates], axis=1)
            positions = np.concatenate([part_rows for _, part_rows in candidates], axis=1)
            best = np.lexsort((order[positions], squared), axis=1)[:, :k]
            width = best.shape[1]
            rows[order[block_rows], :width] = order[np.take_along_axis(positions, best, axis=1)]
            distance[order[block_rows], :width] = np.sqrt(np.take_along_axis(squared, best, axis=1))
    return rows, distance


def nearest_distances(rows: ArrayF32, vectors: ArrayF32) -> ArrayF32:
    """Euclidean distances (M,) of ``rows`` (M, D) to the nearest of ``vectors`` (N, D).

    Infinite if there are no vectors.
    """
    if not len(vectors) or not len(rows):
        return np.full(len(rows), np.inf, dtype=np.float32)
    squared, _ = _nearest(np.ascontiguousarray(rows), np.ascontiguousarray(vectors), 1, 0)
    return np.asarray(np.sqrt(squared[:, 0]))


def pairs_within(
    vectors: ArrayF32,
    groups: ArrayI64,
    radius: float,
    *,
    max_pairs: int,
    progress: Progress = no_progress,
) -> tuple[Pairs, Pairs]:
    """Find the pairs within a distance, across groups and within groups.

    Args:
        vectors: (N, D) float32.
        groups: (N,) int64, group of each vector.
        radius: Largest distance of a pair.
        max_pairs: Maximum of each kind, the nearest ones. Memory is proportional to it.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    across, within = _NearestPairs(max_pairs, radius), _NearestPairs(max_pairs, radius)
    n = len(vectors)
    for start in range(0, n, _BLOCK_ROWS):
        progress(100 * start // n, 100, "comparing")
        end = min(start + _BLOCK_ROWS, n)
        search_radius = max(across.radius, within.radius)
        scale = float(np.square(vectors[start:end]).sum(axis=1).max())
        index = faiss.IndexFlatL2(vectors.shape[1])
        index.add(vectors[start:])  # only later rows, so that each pair is found once
        for at, neighbours in _neighbours_within(
            index, vectors[start:end], search_radius**2 + _SLACK * (scale + 1e-12)
        ):
            a = np.full(len(neighbours), start + at, dtype=np.int64)
            b = neighbours + start
            a, b = a[b > a], b[b > a]
            distance = _distance(vectors, a, b)
            is_across = groups[a] != groups[b]
            across.add(a, b, distance, is_across)
            within.add(a, b, distance, ~is_across)
    return across.pairs(), within.pairs()


def _nearest(rows: ArrayF32, targets: ArrayF32, k: int, offset: int) -> tuple[ArrayF32, ArrayI64]:
    squared, at = faiss.knn(rows, targets, min(k, len(targets)))
    return squared.clip(0), at + offset


def _neighbours_within(
    index: faiss.IndexFlatL2, rows: ArrayF32, squared: float
) -> list[tuple[int, ArrayI64]]:
    limits, _, neighbours = index.range_search(rows, squared)
    return [(at, neighbours[limits[at] : limits[at + 1]]) for at in range(len(rows))]


def _distance(vectors: ArrayF32, a: ArrayI64, b: ArrayI64) -> ArrayF32:
    difference = vectors[a].astype(np.float64) - vectors[b]
    return np.asarray(np.sqrt(np.square(difference).sum(axis=1)), dtype=np.float32)


class _NearestPairs:
    """Buffer of the nearest pairs; the radius shrinks when it is full."""

    def __init__(self, max_pairs: int, radius: float) -> None:
        self.max_pairs, self.radius = max_pairs, radius
        self.is_cut = False
        self.rows: list[ArrayI64] = []
        self.distance: list[ArrayF32] = []
        self.count = 0

    def add(self, a: ArrayI64, b: ArrayI64, distance: ArrayF32, mask: ArrayBool) -> None:
        is_near = mask & (distance <= self.radius)
        if not is_near.any():
            return
        self.rows.append(np.stack([a[is_near], b[is_near]], axis=1))
        self.distance.append(distance[is_near])
        self.count += int(is_near.sum())
        if self.count > _BUFFER_FACTOR * self.max_pairs:
            self._shrink()

    def pairs(self) -> Pairs:
        """The nearest pairs, at most ``max_pairs``."""
        self._shrink()
        rows = self.rows[0] if self.rows else np.empty((0, 2), dtype=np.int64)
        distance = self.distance[0] if self.distance else np.empty(0, dtype=np.float32)
        return Pairs(rows, distance, self.is_cut)

    def _shrink(self) -> None:
        if not self.rows:
            return
        rows, distance = np.concatenate(self.rows), np.concatenate(self.distance)
        order = np.lexsort((rows[:, 1], rows[:, 0], distance))[: self.max_pairs]
        if len(distance) > self.max_pairs:
            self.is_cut = True
            self.radius = float(distance[order[-1]])
        self.rows, self.distance, self.count = [rows[order]], [distance[order]], len(order)
