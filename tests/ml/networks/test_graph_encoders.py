"""The graph encoders: shapes, any order of vertices, graphs that do not see each other."""

from __future__ import annotations

import pytest
import torch

from ml.errors import UnknownNameError
from ml.networks.graph_encoders import GRAPH_ENCODERS, make_graph_encoder

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
BATCH = torch.tensor([0, 0, 0, 1, 1, 1, 2])  # the last graph is one vertex without an edge


@pytest.fixture(params=GRAPH_ENCODERS)
def network(request):
    torch.manual_seed(1)
    return make_graph_encoder(request.param, in_dim=5, hidden_dim=8, out_dim=4).eval()


def test_one_vector_a_graph_even_for_a_single_vertex(network):
    out = network(X, EDGES, BATCH)
    assert out.shape == (3, 4) and bool(torch.isfinite(out).all())


def test_a_graph_does_not_see_its_neighbours_in_the_batch(network):
    alone = network(X[:3], EDGES[:, :4], BATCH[:3])
    together = network(X, EDGES, BATCH)
    assert torch.allclose(alone[0], together[0], atol=1e-5)


def test_the_order_of_the_vertices_does_not_matter(network):
    order = torch.tensor([2, 0, 1])
    place = torch.argsort(order)
    moved = network(X[:3][order], place[EDGES[:, :4]], BATCH[:3])
    assert torch.allclose(moved, network(X[:3], EDGES[:, :4], BATCH[:3]), atol=1e-5)


def test_all_weights_are_trained(network):
    network.train()
    network(X, EDGES, BATCH).pow(2).sum().backward()
    unused = [n for n, p in network.named_parameters() if p.grad is None]
    assert unused == []


def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownNameError, match="unknown graph encoder 'gin'"):
        make_graph_encoder("gin", in_dim=5, hidden_dim=8, out_dim=4)
