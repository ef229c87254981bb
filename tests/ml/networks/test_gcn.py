"""The GCN compared with equations 3 and 4 by dense matrices."""

from __future__ import annotations

import numpy as np
import torch

from ml.networks.gcn import GcnConfig, ProjectionHead, RoiGcn, mean_of_graphs

CONFIG = GcnConfig(in_dim=7, vertex_dim=5, hidden_dim=6, out_dim=4)
EDGES = [(0, 1), (1, 2), (2, 0), (3, 4)]


def network():
    torch.manual_seed(0)
    net = RoiGcn(CONFIG)
    for conv in net.convs:
        torch.nn.init.normal_(conv.bias)
    net.metric.copy_(torch.randn(7, 5))
    return net.eval()


def edge_index(pairs):
    return torch.tensor([*pairs, *[(b, a) for a, b in pairs]]).T


def dense_context(net, vertices, pairs):
    """ReLU(D^-1/2 (A + I) D^-1/2 X Theta + b), twice, then the mean."""
    adjacency = np.eye(len(vertices))
    for a, b in pairs:
        adjacency[a, b] = adjacency[b, a] = 1
    root = np.diag(adjacency.sum(axis=1) ** -0.5)
    x = vertices
    for conv in net.convs:
        theta, bias = conv.lin.weight.detach().numpy().T, conv.bias.detach().numpy()
        x = np.maximum(root @ adjacency @ root @ x @ theta + bias, 0)
    return x.mean(axis=0)


def test_the_context_equals_equations_3_and_4():
    net, x = network(), torch.randn(5, 7)
    vertices = net.vertices(x)
    batch = torch.zeros(5, dtype=torch.int64)
    array = net.context(vertices, edge_index(EDGES), batch).detach().numpy()
    assert np.allclose(array[0], dense_context(net, vertices.numpy(), EDGES), atol=1e-5)


def test_both_parts_of_an_embedding_have_the_configured_length():
    net = network()
    out = net(torch.randn(5, 7), edge_index(EDGES), torch.tensor([0, 0, 0, 1, 1])).detach()
    assert out.shape == (2, CONFIG.embedding_dim)
    assert torch.allclose(out[:, :5].norm(dim=1), torch.ones(2), atol=1e-5)
    assert torch.allclose(
        out[:, 5:].norm(dim=1), torch.full((2,), CONFIG.context_weight), atol=1e-5
    )


def test_the_order_of_vertices_does_not_matter():
    net, x = network(), torch.randn(5, 7)
    order = torch.tensor([3, 0, 4, 1, 2])
    place = torch.argsort(order)
    batch = torch.zeros(5, dtype=torch.int64)
    edges = edge_index(EDGES)
    assert torch.allclose(net(x, edges, batch), net(x[order], place[edges], batch), atol=1e-5)


def test_graphs_of_a_batch_are_independent():
    net, x = network(), torch.randn(5, 7)
    together = net(x, edge_index(EDGES), torch.tensor([0, 0, 0, 1, 1]))
    alone = net(x[3:], edge_index([(0, 1)]), torch.zeros(2, dtype=torch.int64))
    assert torch.allclose(together[1], alone[0], atol=1e-5)


def test_an_outlying_feature_is_clipped():
    net = network()
    assert torch.allclose(
        net.vertices(torch.full((1, 7), 6.0)), net.vertices(torch.full((1, 7), 1e6))
    )


def test_the_projection_head_equals_two_layers_with_a_relu():
    head = ProjectionHead(4, 8, 3)
    assert head(torch.randn(2, 4)).shape == (2, 3)
    assert [type(layer).__name__ for layer in head.layers] == ["Linear", "ReLU", "Linear"]


def test_power_normalisation_preserves_the_signs():
    net = RoiGcn(GcnConfig(in_dim=3, vertex_dim=3, hidden_dim=4, out_dim=2, power=0.5)).eval()
    x, batch = torch.tensor([[4.0, -1.0, 0.0]]), torch.zeros(1, dtype=torch.int64)
    vertex = net(x, torch.zeros((2, 0), dtype=torch.int64), batch)[0, :3]
    assert torch.allclose(vertex, torch.tensor([2.0, -1.0, 0.0]) / 5**0.5, atol=1e-6)


def test_the_mean_of_each_graph_equals_a_hand_worked_value():
    x = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    assert mean_of_graphs(x, torch.tensor([0, 0, 1])).tolist() == [[2, 3], [5, 6]]


def test_means_and_gradients_equal_those_of_pytorch_geometric():
    from torch_geometric.nn import global_mean_pool  # takes seconds to import

    torch.manual_seed(0)
    batch = torch.sort(torch.randint(0, 7, (999,))).values
    x_ours, x_library = (
        torch.randn(999, 5, generator=torch.Generator().manual_seed(1)) for _ in "ab"
    )
    for x in (x_ours, x_library):
        x.requires_grad_()
    ours, expected = mean_of_graphs(x_ours, batch), global_mean_pool(x_library, batch)
    assert torch.equal(ours, expected)
    for output in (ours, expected):
        output.square().sum().backward()
    assert torch.equal(x_ours.grad, x_library.grad)


def test_a_graph_without_vertices_gives_zeros():
    assert mean_of_graphs(torch.ones(1, 2), torch.tensor([1])).tolist() == [[0, 0], [1, 1]]
