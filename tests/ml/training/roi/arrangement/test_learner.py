"""The graph part learned by arrangement."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError
from ml.networks.vertex_mean import VertexMean, vertex_mean_config
from ml.roi.graph import RoiGraph, build_graph
from ml.training.roi.arrangement.config import ARCHITECTURES, ArrangementConfig
from ml.training.roi.arrangement.learner import ArrangementLearner
from ml.training.roi.arrangement.views import rearranged_graph

EDGE_PX = 250.0


def two_compartments(seed: int) -> RoiGraph:
    """Two tissues, one on each side of a line."""
    rng = np.random.default_rng(seed)
    centre_px = rng.uniform(0, 1000, (40, 2))
    x = rng.normal(0, 0.2, (40, 6)).astype(np.float32)
    x[:, seed % 3] += np.where(centre_px[:, 0] < 500, 2, 0)
    x[:, 3 + seed % 3] += np.where(centre_px[:, 0] < 500, 0, 2)
    return build_graph(x, centre_px, edge_px=EDGE_PX)


def base() -> VertexMean:
    return VertexMean(vertex_mean_config(6))


def learner(architecture: str = "gcn", steps: int = 0) -> ArrangementLearner:
    torch.manual_seed(0)
    config = ArrangementConfig(architecture=architecture, hidden_dim=16, out_dim=16, batch=8)
    trained = ArrangementLearner(
        config, base(), [two_compartments(seed) for seed in range(12)], edge_px=EDGE_PX
    )
    history: dict[str, list[float]] = {}
    for step in range(steps):
        trained.step(step, history)
    return trained


def embed(network, graph):
    with torch.inference_mode():
        batch = torch.zeros(len(graph), dtype=torch.int64)
        return network(torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index), batch)[0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_embedding_is_the_mean_and_a_part_that_depends_on_the_arrangement(architecture):
    network = learner(architecture, steps=3).finish()
    graph = two_compartments(20)
    other = rearranged_graph(graph, np.random.default_rng(0), grid=4, edge_px=EDGE_PX)
    result, moved, mean = embed(network, graph), embed(network, other), embed(base(), graph)
    assert torch.allclose(result[:6], mean, atol=1e-5)
    assert torch.allclose(moved[:6], mean, atol=1e-5)
    assert (result[6:] - moved[6:]).norm() > 0.01
    assert result[6:].norm() == pytest.approx(network.config.context_weight, abs=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_order_of_the_vertices_does_not_matter(architecture):
    network = learner(architecture, steps=1).finish()
    graph = two_compartments(20)
    order = np.random.default_rng(0).permutation(len(graph))
    other = build_graph(graph.x[order], graph.pos[order].astype(np.float64), edge_px=EDGE_PX)
    assert torch.allclose(embed(network, graph), embed(network, other), atol=1e-4)


def test_training_is_deterministic_for_a_seed():
    first, second = (learner(steps=2).finish().state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_half_a_region_is_nearer_to_it_than_to_a_rearranged_one_after_training():
    trained = learner(steps=60)
    network = trained.finish()
    wins = []
    for seed in range(20, 60):
        graph = two_compartments(seed)
        rng = np.random.default_rng(seed)
        other = rearranged_graph(graph, rng, grid=4, edge_px=EDGE_PX)
        vertices = np.sort(rng.permutation(40)[:26])
        view = build_graph(
            graph.x[vertices], graph.pos[vertices].astype(np.float64), edge_px=EDGE_PX
        )
        query = embed(network, view)
        near, far = embed(network, graph), embed(network, other)
        wins.append(bool((query - near).norm() < (query - far).norm()))
    assert np.mean(wins) > 0.8  # the mean is the same for both


def test_an_unknown_architecture_raises_an_error():
    with pytest.raises(UnknownNameError, match="architecture"):
        learner("perceptron")
