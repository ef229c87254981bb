"""Graph encoders: shapes, and invariance to the order of vertices and to other graphs.

The networks are imported where they are used, as PyTorch Geometric takes seconds.
"""

from __future__ import annotations

import pytest
import torch

from ml.errors import UnknownNameError

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
BATCH = torch.tensor([0, 0, 0, 1, 1, 1, 2])  # the last graph is one vertex without an edge


@pytest.fixture
def make_graph_encoder():
    from ml.networks.graph_encoders import make_graph_encoder

    return make_graph_encoder


@pytest.fixture(params=("mean", "gcn", "diffpool", "topk"))
def network(request, make_graph_encoder):
    torch.manual_seed(1)
    return make_graph_encoder(request.param, in_dim=5, hidden_dim=8, out_dim=4).eval()


def test_each_graph_gets_a_vector_even_with_a_single_vertex(network):
    out = network(X, EDGES, BATCH)
    assert out.shape == (3, 4) and bool(torch.isfinite(out).all())


def test_graphs_of_a_batch_are_independent(network):
    alone = network(X[:3], EDGES[:, :4], BATCH[:3])
    together = network(X, EDGES, BATCH)
    assert torch.allclose(alone[0], together[0], atol=1e-5)


def test_the_order_of_the_vertices_does_not_matter(network):
    order = torch.tensor([2, 0, 1])
    place = torch.argsort(order)
    moved = network(X[:3][order], place[EDGES[:, :4]], BATCH[:3])
    assert torch.allclose(moved, network(X[:3], EDGES[:, :4], BATCH[:3]), atol=1e-5)


def test_all_weights_get_gradients(network):
    network.train()
    network(X, EDGES, BATCH).pow(2).sum().backward()
    unused = [n for n, p in network.named_parameters() if p.grad is None]
    assert unused == []


def test_an_unknown_name_raises_an_error(make_graph_encoder):
    with pytest.raises(UnknownNameError, match="'gin'"):
        make_graph_encoder("gin", in_dim=5, hidden_dim=8, out_dim=4)


def test_pooling_of_saturated_scores_does_not_depend_on_vertex_order(make_graph_encoder):
    torch.manual_seed(0)
    network = make_graph_encoder("topk", in_dim=6, hidden_dim=16, out_dim=8)
    x = torch.randn(40, 6) * 100  # the tanh of most scores is 1
    pairs = torch.randint(0, 40, (200, 2))
    pairs = torch.unique(torch.cat([pairs, pairs.flip(1)]), dim=0)
    order = torch.randperm(40)
    place = torch.empty(40, dtype=torch.int64)
    place[order] = torch.arange(40)
    batch = torch.zeros(40, dtype=torch.int64)
    output = network(x, pairs.T, batch)
    assert torch.allclose(output, network(x[order], place[pairs].T, batch), rtol=1e-4)


def test_pooling_equals_the_library_for_distinct_scores():
    from torch_geometric.nn import TopKPooling

    from ml.networks.topk import pool_by_score

    torch.manual_seed(0)
    pool, x = TopKPooling(8, 0.6), torch.randn(30, 8) * 0.1
    edges, batch = torch.randint(0, 30, (2, 90)), torch.arange(30) // 15
    vertices, connected, _, graphs, _, _ = pool(x, edges, batch=batch)
    pooled = pool_by_score(pool, x, edges, batch)
    assert torch.allclose(pooled[0], vertices)
    assert torch.equal(pooled[1], connected) and torch.equal(pooled[2], graphs)
