"""Views that keep or destroy the arrangement of a region."""

from __future__ import annotations

import numpy as np

from ml.roi.graph import build_graph
from ml.training.roi.arrangement.views import (
    MIN_VERTICES,
    rearranged_graph,
    view_of,
    without_side,
)


def region(count=40):
    rng = np.random.default_rng(0)
    x = np.arange(count, dtype=np.float32)[:, None]
    return build_graph(x, rng.uniform(0, 1000, (count, 2)), edge_px=300)


def test_the_removed_part_is_contiguous():
    graph = region()
    vertices = without_side(graph, np.random.default_rng(3), share=(0.3, 0.3))
    assert len(vertices) == 28
    removed = np.setdiff1d(np.arange(40), vertices)
    angles = np.linspace(0, 2 * np.pi, 720)
    along = graph.pos @ np.stack([np.cos(angles), np.sin(angles)])
    assert (along[vertices].max(axis=0) <= along[removed].min(axis=0)).any()


def test_a_small_region_retains_enough_vertices():
    rng = np.random.default_rng(0)
    assert len(view_of(region(5), rng, cut=(0.9, 0.9), drop=(0.9, 0.9))) == MIN_VERTICES
    assert len(view_of(region(2), rng, cut=(0.9, 0.9), drop=(0.9, 0.9))) == 2


def test_a_rearranged_region_has_the_same_vertices_and_other_neighbours():
    graph = region()
    negative = rearranged_graph(graph, np.random.default_rng(0), grid=2, edge_px=300)
    assert np.array_equal(negative.x, graph.x)
    edges = {tuple(edge) for edge in graph.edge_index.T.tolist()}
    others = {tuple(edge) for edge in negative.edge_index.T.tolist()}
    assert 0 < len(edges & others) < len(edges)
