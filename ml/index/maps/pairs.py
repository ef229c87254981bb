"""Pairs of vectors closer than a distance, and the nearest of each vector in other groups."""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayI64, Progress, no_progress

_BLOCK_ROWS = 1_024  # searched at a time: bounds what a range search may find at once
_HELD_TIMES = 8  # of what is kept: so many are held before the farther ones go
_SLACK = 1e-3
"""FAISS' squared distances come from products in float32: pairs are looked for a little beyond and
measured again."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs, the nearest first, ties by rows.

    Attributes:
        rows: (P, 2) int64, the lower row first. distance: (P,) float32, Euclidean.
        is_cut: there were more than were kept.
    """

    rows: ArrayI64
    distance: ArrayF32
    is_cut: bool


def neighbours_elsewhere(
    vectors: ArrayF32,
    groups: ArrayI64,
    k: int,
    progress: Progress = no_progress,
) -> tuple[ArrayI64, ArrayF32]:
    """The ``k`` nearest of each vector among those of other groups. Exact.

    The cost grows with the square of N.

    Args:
        vectors: (N, D) float32. groups: (N,) of each.
    Returns:
        Rows (N, k) int64, -1 where there are no more, and distances (N, k) float32, then infinite.
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
            own = slice(block, min(block + _BLOCK_ROWS, end))
            found = [
                _nearest(sorted_vectors[own], sorted_vectors[part], k, part.start)
                for part in (slice(0, start), slice(end, n))
                if part.stop > part.start
            ]
            if not found:
                continue
            squared = np.concatenate([one for one, _ in found], axis=1)
            at = np.concatenate([one for _, one in found], axis=1)
            best = np.lexsort((order[at], squared), axis=1)[:, :k]
            width = best.shape[1]
            rows[order[own], :width] = order[np.take_along_axis(at, best, axis=1)]
            distance[order[own], :width] = np.sqrt(np.take_along_axis(squared, best, axis=1))
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
    most: int,
    progress: Progress = no_progress,
) -> tuple[Pairs, Pairs]:
    """Pairs no farther apart than ``radius``: of two groups, and within one.

    Args:
        vectors: (N, D) float32. groups: (N,) of each.
        most: of each kind, the nearest. Memory stays within a few times as many.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    across, within = _Kept(most, radius), _Kept(most, radius)
    n = len(vectors)
    for start in range(0, n, _BLOCK_ROWS):
        progress(100 * start // n, 100, "comparing")
        end = min(start + _BLOCK_ROWS, n)
        reach = max(across.radius, within.radius)
        scale = float(np.square(vectors[start:end]).sum(axis=1).max())
        index = faiss.IndexFlatL2(vectors.shape[1])
        index.add(vectors[start:])  # later rows only: each pair once
        for at, found in _in_reach(index, vectors[start:end], reach**2 + _SLACK * (scale + 1e-12)):
            a = np.full(len(found), start + at, dtype=np.int64)
            b = found + start
            a, b = a[b > a], b[b > a]
            distance = _distance(vectors, a, b)
            is_across = groups[a] != groups[b]
            across.add(a, b, distance, is_across)
            within.add(a, b, distance, ~is_across)
    return across.pairs(), within.pairs()


def _nearest(own: ArrayF32, others: ArrayF32, k: int, offset: int) -> tuple[ArrayF32, ArrayI64]:
    squared, at = faiss.knn(own, others, min(k, len(others)))
    return squared.clip(0), at + offset


def _in_reach(
    index: faiss.IndexFlatL2, rows: ArrayF32, squared: float
) -> list[tuple[int, ArrayI64]]:
    limits, _, found = index.range_search(rows, squared)
    return [(at, found[limits[at] : limits[at + 1]]) for at in range(len(rows))]


def _distance(vectors: ArrayF32, a: ArrayI64, b: ArrayI64) -> ArrayF32:
    apart = vectors[a].astype(np.float64) - vectors[b]
    return np.asarray(np.sqrt(np.square(apart).sum(axis=1)), dtype=np.float32)


class _Kept:
    """The nearest pairs so far; once there are too many, the radius shrinks."""

    def __init__(self, most: int, radius: float) -> None:
        self.most, self.radius = most, radius
        self.is_cut = False
        self.rows: list[ArrayI64] = []
        self.distance: list[ArrayF32] = []
        self.held = 0

    def add(self, a: ArrayI64, b: ArrayI64, distance: ArrayF32, wanted: ArrayBool) -> None:
        near = wanted & (distance <= self.radius)
        if not near.any():
            return
        self.rows.append(np.stack([a[near], b[near]], axis=1))
        self.distance.append(distance[near])
        self.held += int(near.sum())
        if self.held > _HELD_TIMES * self.most:
            self._cut()

    def pairs(self) -> Pairs:
        """What is left."""
        self._cut()
        rows = self.rows[0] if self.rows else np.empty((0, 2), dtype=np.int64)
        distance = self.distance[0] if self.distance else np.empty(0, dtype=np.float32)
        return Pairs(rows, distance, self.is_cut)

    def _cut(self) -> None:
        if not self.rows:
            return
        rows, distance = np.concatenate(self.rows), np.concatenate(self.distance)
        order = np.lexsort((rows[:, 1], rows[:, 0], distance))[: self.most]
        if len(distance) > self.most:
            self.is_cut = True
            self.radius = float(distance[order[-1]])
        self.rows, self.distance, self.held = [rows[order]], [distance[order]], len(order)
