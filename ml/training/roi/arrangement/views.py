"""Views of a region that keep or destroy the arrangement of its tissue."""

from __future__ import annotations

import numpy as np

from ml.roi.graph import RoiGraph, build_graph
from ml.training.roi.encoder.augment import vertex_dropout
from ml.training.roi.encoder.graph import subgraph
from ml.types import ArrayI64

MIN_VERTICES = 4
"""Vertices that a view keeps, if the region has as many."""


def without_side(
    graph: RoiGraph, rng: np.random.Generator, *, share: tuple[float, float]
) -> ArrayI64:
    """Remove a contiguous part of a region: all vertices beyond a random line.

    Args:
        share: Least and largest share of the vertices to remove.
    Returns:
        (n,) int64, ascending indices of the others, at least ``MIN_VERTICES`` if there are.
    """
    angle = rng.uniform(0, 2 * np.pi)
    along = graph.pos @ np.array([np.cos(angle), np.sin(angle)])
    count = len(graph)
    kept_count = max(round(count * (1 - rng.uniform(*share))), min(MIN_VERTICES, count))
    return np.sort(np.argsort(along, kind="stable")[:kept_count]).astype(np.int64)


def view_of(
    graph: RoiGraph,
    rng: np.random.Generator,
    *,
    cut: tuple[float, float],
    drop: tuple[float, float],
) -> RoiGraph:
    """Subgraph of a region without a contiguous part and without random other vertices.

    Args:
        cut: See ``without_side``.
        drop: Share of the remaining vertices to remove, see ``vertex_dropout``.
    Source: the retrieval paper, section III-B; departs from it by the contiguous part.
    """
    vertices = without_side(graph, rng, share=cut)
    rows = vertex_dropout(rng, len(vertices), drop=drop, keep_at_least=MIN_VERTICES)
    return subgraph(graph, vertices[rows])


def rearranged_graph(
    graph: RoiGraph, rng: np.random.Generator, *, grid: int, edge_px: float
) -> RoiGraph:
    """Exchange the cells of a grid over a region: the same vertices with other neighbours.

    Args:
        grid: Cells along a side of the bounding box, 2 or more.
        edge_px: Longest edge, see ``build_graph``.
    """
    low = graph.pos.min(axis=0)
    side = np.maximum(graph.pos.max(axis=0) - low, 1.0) / grid
    cell = np.clip(((graph.pos - low) / side).astype(np.int64), 0, grid - 1)
    order = rng.permutation(grid * grid)
    target = order[cell[:, 1] * grid + cell[:, 0]]
    moved = np.stack([target % grid, target // grid], axis=1)
    pos = graph.pos.astype(np.float64) + (moved - cell) * side
    return build_graph(graph.x, pos, edge_px=edge_px)
