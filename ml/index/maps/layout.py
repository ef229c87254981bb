"""Vectors laid out on a plane, so that neighbours stay neighbours.

UMAP's scheme: a graph of nearest neighbours with smooth weights, laid out by attraction along its
edges and repulsion of chance pairs. Each epoch moves all points at once by sums in a fixed order,
so that the same vectors give the same map.

Source: McInnes, Healy, Melville 2018, "UMAP", algorithms 1 to 5; departs from it by principal
components instead of a spectral start, exact neighbours, and points moved all at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from ml.types import ArrayF32, ArrayF64, ArrayI64, Progress, no_progress

_LEAST_ROWS = 4
"""Fewer points have no neighbourhoods: they lie by their principal components."""
_CURVE_A, _CURVE_B = 1.577, 0.895  # UMAP's curve of similarity for a spread of 1, least distance .1
_STEP_MOST = 4.0  # UMAP's bound on the pull of one edge
_SIGMA_STEPS = 64  # halvings that find a point's own scale, as in UMAP's algorithm 3
_START_SPAN = 10.0  # UMAP's: the start spans -10 to 10
_PLACE_BY = 3  # neighbours that a point not laid out is placed among
_BLOCK_ROWS = 4_096  # rows searched at a time, so that a job can be stopped


@dataclass(frozen=True, slots=True)
class LayoutConfig:
    """How a map is drawn.

    Attributes:
        components: principal components that neighbours are looked for in.
        neighbours: of each point in the graph. epochs: how often all points are moved.
        repelled: chance points that each edge's end is pushed away from.
        laid_out: at most this many points are laid out (finding neighbours costs the square of
            it); the others are placed among their nearest of these.
        seed: of all that is drawn by chance.
    """

    components: int = 50
    neighbours: int = 15
    epochs: int = 200
    repelled: int = 5
    laid_out: int = 20_000
    seed: int = 0


def lay_out(
    vectors: ArrayF32,
    config: LayoutConfig | None = None,
    progress: Progress = no_progress,
) -> ArrayF32:
    """Places of vectors on a plane.

    Args:
        vectors: (N, D) float32, finite. progress: told shares of 100.
    Returns:
        (N, 2) float32 in 0 to 1, x and y at one scale. Equal input gives equal output.
    """
    config = config or LayoutConfig()
    if not len(vectors):
        return np.empty((0, 2), dtype=np.float32)
    reduced = _reduced(vectors, config.components)
    chosen = _chosen(len(reduced), config)
    own = np.ascontiguousarray(reduced[chosen])
    if len(own) < _LEAST_ROWS:
        return _framed(_start(reduced))
    progress(5, 100, "finding neighbours")
    xy = _moved(_start(own), *_edges(own, min(config.neighbours, len(own) - 1)), config, progress)
    if len(chosen) == len(reduced):
        return _framed(xy)
    return _framed(_placed(reduced, own, xy, chosen, progress))


def _chosen(n: int, config: LayoutConfig) -> ArrayI64:
    """Rows that are laid out, ascending."""
    if n <= config.laid_out:
        return np.arange(n)
    drawn = np.random.default_rng(config.seed).choice(n, config.laid_out, replace=False)
    return np.asarray(np.sort(drawn), dtype=np.int64)


def _reduced(vectors: ArrayF32, components: int) -> ArrayF32:
    """(N, C) principal components, signs fixed: the largest entry of each axis is positive."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, np.argsort(values)[::-1][:components]]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(np.ascontiguousarray(centred @ axes), dtype=np.float32)


def _start(reduced: ArrayF32) -> ArrayF64:
    """(N, 2): the first two components; with a single one, all lie on a line."""
    xy = np.zeros((len(reduced), 2))
    xy[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    span = np.abs(xy).max()
    return np.asarray(xy * (_START_SPAN / span) if span else xy)


def _edges(rows: ArrayF32, k: int) -> tuple[ArrayI64, ArrayI64, ArrayF64]:
    """The fuzzy graph: each edge once, with its weight in 0 to 1."""
    squared, at = faiss.knn(rows, rows, k + 1)
    others = at != np.arange(len(rows))[:, None]  # equal rows: the row itself need not come first
    others[others.all(axis=1), -1] = False
    at, distance = at[others].reshape(-1, k), np.sqrt(squared[others].reshape(-1, k).clip(0))
    weight = _smooth(distance.astype(np.float64))
    source = np.repeat(np.arange(len(rows)), k)
    target = at.ravel().astype(np.int64)
    low, high = np.minimum(source, target), np.maximum(source, target)
    keys, edge = np.unique(low * len(rows) + high, return_inverse=True)
    total = np.bincount(edge, weight.ravel(), len(keys))
    square = np.bincount(edge, weight.ravel() ** 2, len(keys))
    # a + b - ab of both directions; ab is half of what (a + b)^2 has beyond a^2 + b^2
    fuzzy = total - (total**2 - square) / 2
    return keys // len(rows), keys % len(rows), np.asarray(fuzzy.clip(0, 1))


def _smooth(distance: ArrayF64) -> ArrayF64:
    """(N, k) weights, each row summing to log2(k): 1 for the nearest, less by its own scale."""
    beyond = (distance - distance[:, :1]).clip(0)
    target = np.log2(max(distance.shape[1], 2))
    low, high = np.zeros(len(distance)), np.full(len(distance), np.inf)
    sigma = np.ones(len(distance))
    for _ in range(_SIGMA_STEPS):
        is_wide = np.exp(-beyond / sigma[:, None]).sum(axis=1) > target
        high, low = np.where(is_wide, sigma, high), np.where(is_wide, low, sigma)
        sigma = np.where(np.isinf(high), sigma * 2, (low + high) / 2).clip(1e-9, 1e9)
    return np.asarray(np.exp(-beyond / sigma[:, None]))


def _moved(  # noqa: PLR0917  a graph is three arrays
    xy: ArrayF64,
    source: ArrayI64,
    target: ArrayI64,
    weight: ArrayF64,
    config: LayoutConfig,
    progress: Progress,
) -> ArrayF64:
    rng = np.random.default_rng(config.seed)
    xy = xy + rng.normal(scale=1e-3, size=xy.shape)  # equal points would stay one for ever
    n = len(xy)
    for epoch in range(config.epochs):
        drawn = rng.random(len(weight)) < weight / weight.max()
        a, b = source[drawn], target[drawn]
        pull = _pull(xy[a] - xy[b])
        ends = np.repeat(np.concatenate([a, b]), config.repelled)
        push = _push(xy[ends] - xy[rng.integers(0, n, len(ends))])
        at = np.concatenate([a, b, ends])
        moves = np.concatenate([pull, -pull, push])
        step = 1.0 - epoch / config.epochs
        for axis in range(2):
            xy[:, axis] += step * np.bincount(at, moves[:, axis], n)
        if epoch % 10 == 0:
            progress(10 + 60 * epoch // config.epochs, 100, "drawing the map")
    return xy


def _pull(apart: ArrayF64) -> ArrayF64:
    """Attraction along an edge, eq. of UMAP's algorithm 5, bounded."""
    squared = np.square(apart).sum(axis=1).clip(1e-12)
    force = (
        -2 * _CURVE_A * _CURVE_B * squared ** (_CURVE_B - 1) / (1 + _CURVE_A * squared**_CURVE_B)
    )
    return np.asarray((force[:, None] * apart).clip(-_STEP_MOST, _STEP_MOST))


def _push(apart: ArrayF64) -> ArrayF64:
    """Repulsion from chance points; none from the point itself."""
    squared = np.square(apart).sum(axis=1)
    force = 2 * _CURVE_B / ((0.001 + squared) * (1 + _CURVE_A * squared**_CURVE_B))
    return np.asarray((force[:, None] * apart).clip(-_STEP_MOST, _STEP_MOST))


def _placed(
    reduced: ArrayF32, own: ArrayF32, xy: ArrayF64, chosen: ArrayI64, progress: Progress
) -> ArrayF64:
    """Points not laid out lie among their nearest of those that are, the nearer the more."""
    placed = np.empty((len(reduced), 2))
    placed[chosen] = xy
    others = np.setdiff1d(np.arange(len(reduced)), chosen, assume_unique=True)
    for start in range(0, len(others), _BLOCK_ROWS):
        progress(70 + 30 * start // len(others), 100, "placing the others")
        some = others[start : start + _BLOCK_ROWS]
        squared, at = faiss.knn(np.ascontiguousarray(reduced[some]), own, _PLACE_BY)
        weight = 1 / np.sqrt(squared.clip(0) + 1e-12)
        weight /= weight.sum(axis=1, keepdims=True)
        placed[some] = (xy[at] * weight[:, :, None]).sum(axis=1)
    return placed


def _framed(xy: ArrayF64) -> ArrayF32:
    """Into 0 to 1, at one scale, in the middle."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = float((high - low).max()) or 1.0
    return np.asarray(((xy - (low + high) / 2) / span + 0.5).clip(0, 1), dtype=np.float32)
