"""Two-dimensional layout of vectors that preserves neighbourhoods.

UMAP's scheme: a graph of nearest neighbours with smooth weights, laid out by attraction along its
edges and repulsion of random pairs. Each epoch moves all points simultaneously by sums in a fixed
order, so that equal vectors give equal maps.

Source: McInnes, Healy, Melville 2018, "UMAP", algorithms 1 to 5; departs from it by principal
components instead of a spectral start, exact neighbours, and simultaneous moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from ml.types import ArrayF32, ArrayF64, ArrayI64, Progress, no_progress

_MIN_ROWS = 4
"""Fewer points have no neighbourhoods; their principal components are the layout."""
_CURVE_A, _CURVE_B = 1.577, 0.895  # UMAP's a and b for a spread of 1 and min_dist 0.1
_MAX_STEP = 4.0  # UMAP's bound on the gradient of one edge
_SIGMA_STEPS = 64  # bisections for the scale of a point, as in UMAP's algorithm 3
_START_SPAN = 10.0  # the initial layout spans -10 to 10, as in UMAP
_PLACE_BY = 3  # neighbours by which a point outside the layout is placed
_BLOCK_ROWS = 4_096  # rows searched at a time, so that a job can be stopped


@dataclass(frozen=True, slots=True)
class LayoutConfig:
    """Configuration of a map's layout.

    Attributes:
        components: Number of principal components for the neighbour search.
        neighbours: Neighbours of each point in the graph.
        epochs: Number of epochs.
        negatives: Random points that repel each end of an edge.
        max_points: Largest number of points in the layout (the neighbour search is quadratic); the
            others are placed among their nearest of these.
        seed: Seed of all random choices.
    """

    components: int = 50
    neighbours: int = 15
    epochs: int = 200
    negatives: int = 5
    max_points: int = 20_000
    seed: int = 0


def umap_layout(
    vectors: ArrayF32,
    config: LayoutConfig | None = None,
    progress: Progress = no_progress,
) -> ArrayF32:
    """Lay out vectors on a plane.

    Args:
        vectors: (N, D) float32, finite.
        progress: Called with percentages.
    Returns:
        (N, 2) float32 in 0 to 1, x and y at one scale. Equal input gives equal output.
    """
    config = config or LayoutConfig()
    if not len(vectors):
        return np.empty((0, 2), dtype=np.float32)
    reduced = _principal_components(vectors, config.components)
    sample_rows = _sample_rows(len(reduced), config)
    sample = np.ascontiguousarray(reduced[sample_rows])
    if len(sample) < _MIN_ROWS:
        return _normalise(_start(reduced))
    progress(5, 100, "finding neighbours")
    xy = _optimise(
        _start(sample), *_edges(sample, min(config.neighbours, len(sample) - 1)), config, progress
    )
    if len(sample_rows) == len(reduced):
        return _normalise(xy)
    return _normalise(_place_others(reduced, sample, xy, sample_rows, progress))


def _sample_rows(n: int, config: LayoutConfig) -> ArrayI64:
    """Rows that the layout is computed from, ascending."""
    if n <= config.max_points:
        return np.arange(n)
    sample = np.random.default_rng(config.seed).choice(n, config.max_points, replace=False)
    return np.asarray(np.sort(sample), dtype=np.int64)


def _principal_components(vectors: ArrayF32, components: int) -> ArrayF32:
    """Principal components (N, C); the largest entry of each axis is positive."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, np.argsort(values)[::-1][:components]]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(np.ascontiguousarray(centred @ axes), dtype=np.float32)


def _start(reduced: ArrayF32) -> ArrayF64:
    """Initial layout (N, 2): the first two components; a line if there is only one."""
    xy = np.zeros((len(reduced), 2))
    xy[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    span = np.abs(xy).max()
    return np.asarray(xy * (_START_SPAN / span) if span else xy)


def _edges(rows: ArrayF32, k: int) -> tuple[ArrayI64, ArrayI64, ArrayF64]:
    """Edges of the fuzzy graph, each once: two rows and a weight in 0 to 1."""
    squared, at = faiss.knn(rows, rows, k + 1)
    is_neighbour = (
        at != np.arange(len(rows))[:, None]
    )  # with equal rows, the row itself may not come first
    is_neighbour[is_neighbour.all(axis=1), -1] = False
    at, distance = (
        at[is_neighbour].reshape(-1, k),
        np.sqrt(squared[is_neighbour].reshape(-1, k).clip(0)),
    )
    weight = _smooth_weights(distance.astype(np.float64))
    source = np.repeat(np.arange(len(rows)), k)
    target = at.ravel().astype(np.int64)
    low, high = np.minimum(source, target), np.maximum(source, target)
    keys, edge = np.unique(low * len(rows) + high, return_inverse=True)
    total = np.bincount(edge, weight.ravel(), len(keys))
    square = np.bincount(edge, weight.ravel() ** 2, len(keys))
    # a + b - ab of both directions, with 2ab = (a + b)^2 - (a^2 + b^2)
    fuzzy = total - (total**2 - square) / 2
    return keys // len(rows), keys % len(rows), np.asarray(fuzzy.clip(0, 1))


def _smooth_weights(distance: ArrayF64) -> ArrayF64:
    """Weights (N, k): 1 for the nearest; the scale of a row makes its sum log2(k)."""
    beyond = (distance - distance[:, :1]).clip(0)
    target = np.log2(max(distance.shape[1], 2))
    low, high = np.zeros(len(distance)), np.full(len(distance), np.inf)
    sigma = np.ones(len(distance))
    for _ in range(_SIGMA_STEPS):
        is_wide = np.exp(-beyond / sigma[:, None]).sum(axis=1) > target
        high, low = np.where(is_wide, sigma, high), np.where(is_wide, low, sigma)
        sigma = np.where(np.isinf(high), sigma * 2, (low + high) / 2).clip(1e-9, 1e9)
    return np.asarray(np.exp(-beyond / sigma[:, None]))


def _optimise(  # noqa: PLR0917  a graph is three arrays
    xy: ArrayF64,
    source: ArrayI64,
    target: ArrayI64,
    weight: ArrayF64,
    config: LayoutConfig,
    progress: Progress,
) -> ArrayF64:
    rng = np.random.default_rng(config.seed)
    xy = xy + rng.normal(scale=1e-3, size=xy.shape)  # equal points would never separate
    n = len(xy)
    for epoch in range(config.epochs):
        is_drawn = rng.random(len(weight)) < weight / weight.max()
        a, b = source[is_drawn], target[is_drawn]
        attraction = _attraction(xy[a] - xy[b])
        ends = np.repeat(np.concatenate([a, b]), config.negatives)
        repulsion = _repulsion(xy[ends] - xy[rng.integers(0, n, len(ends))])
        at = np.concatenate([a, b, ends])
        moves = np.concatenate([attraction, -attraction, repulsion])
        step = 1.0 - epoch / config.epochs
        for axis in range(2):
            xy[:, axis] += step * np.bincount(at, moves[:, axis], n)
        if epoch % 10 == 0:
            progress(10 + 60 * epoch // config.epochs, 100, "drawing the map")
    return xy


def _attraction(difference: ArrayF64) -> ArrayF64:
    """Gradient (M, 2) of attraction along edges, as in UMAP's algorithm 5, bounded."""
    squared = np.square(difference).sum(axis=1).clip(1e-12)
    force = (
        -2 * _CURVE_A * _CURVE_B * squared ** (_CURVE_B - 1) / (1 + _CURVE_A * squared**_CURVE_B)
    )
    return np.asarray((force[:, None] * difference).clip(-_MAX_STEP, _MAX_STEP))


def _repulsion(difference: ArrayF64) -> ArrayF64:
    """Gradient (M, 2) of repulsion from random points, bounded; 0 from the point itself."""
    squared = np.square(difference).sum(axis=1)
    force = 2 * _CURVE_B / ((0.001 + squared) * (1 + _CURVE_A * squared**_CURVE_B))
    return np.asarray((force[:, None] * difference).clip(-_MAX_STEP, _MAX_STEP))


def _place_others(
    reduced: ArrayF32, sample: ArrayF32, xy: ArrayF64, sample_rows: ArrayI64, progress: Progress
) -> ArrayF64:
    """Place the other points at the weighted mean of their nearest points in the layout."""
    xy_all = np.empty((len(reduced), 2))
    xy_all[sample_rows] = xy
    rows_left = np.setdiff1d(np.arange(len(reduced)), sample_rows, assume_unique=True)
    for start in range(0, len(rows_left), _BLOCK_ROWS):
        progress(70 + 30 * start // len(rows_left), 100, "placing the others")
        block = rows_left[start : start + _BLOCK_ROWS]
        squared, at = faiss.knn(np.ascontiguousarray(reduced[block]), sample, _PLACE_BY)
        weight = 1 / np.sqrt(squared.clip(0) + 1e-12)
        weight /= weight.sum(axis=1, keepdims=True)
        xy_all[block] = (xy[at] * weight[:, :, None]).sum(axis=1)
    return xy_all


def _normalise(xy: ArrayF64) -> ArrayF32:
    """Scale to 0 to 1 in both axes alike, centred."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = float((high - low).max()) or 1.0
    return np.asarray(((xy - (low + high) / 2) / span + 0.5).clip(0, 1), dtype=np.float32)
