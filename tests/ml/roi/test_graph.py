"""Proximity graphs compared with a slow version."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.roi.graph import build_graph


def slow_edges(centres, limit):
    return {
        (i, j)
        for i in range(len(centres))
        for j in range(len(centres))
        if i != j and np.hypot(*(centres[i] - centres[j])) <= limit
    }


def test_edges_are_all_pairs_within_twice_a_patch():
    centres = np.random.default_rng(0).uniform(0, 2000, (60, 2))
    graph = build_graph(np.ones((60, 3), np.float32), centres)
    assert {tuple(edge) for edge in graph.edge_index.T} == slow_edges(centres, 448)
    assert graph.edge_index.shape[1] == len(slow_edges(centres, 448))


def test_a_distance_of_exactly_448_is_an_edge():
    graph = build_graph(np.ones((3, 1), np.float32), np.array([[0, 0], [448.0, 0], [896.1, 0]]))
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]


def test_positions_are_relative_to_the_region():
    centres = np.array([[1000.0, 1000], [1200, 1400]])
    graph = build_graph(np.ones((2, 1), np.float32), centres)
    moved = build_graph(np.ones((2, 1), np.float32), centres + 5000)
    assert graph.pos.tolist() == [[-100, -200], [100, 200]]
    assert np.array_equal(graph.pos, moved.pos)


def test_one_vertex_is_a_graph_without_edges():
    graph = build_graph(np.ones((1, 4), np.float32), np.zeros((1, 2)))
    assert graph.edge_index.shape == (2, 0) and graph.x.shape == (1, 4) and len(graph) == 1


def test_no_vertices_raise_an_error():
    with pytest.raises(ShapeError, match="N > 0"):
        build_graph(np.ones((0, 4), np.float32), np.zeros((0, 2)))
