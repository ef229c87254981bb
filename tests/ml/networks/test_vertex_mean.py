"""The mean of the vertices of a graph."""

from __future__ import annotations

import numpy as np
import torch

from ml.networks.gcn import GcnConfig, RoiGcn
from ml.networks.vertex_mean import VertexMean, make_graph_network, vertex_mean_config


def test_the_mean_of_each_graph_has_unit_length():
    network = make_graph_network(vertex_mean_config(3))
    assert isinstance(network, VertexMean) and network.config.embedding_dim == 3
    x = torch.tensor([[3.0, 0, 0], [0, 4, 0], [0, 0, -2]])
    edges = torch.zeros(2, 0, dtype=torch.int64)
    array = network(x, edges, torch.tensor([0, 0, 1])).numpy()
    assert np.allclose(array, [[0.6, 0.8, 0], [0, 0, -1]])


def test_features_are_standardised_by_the_buffers():
    network = VertexMean(vertex_mean_config(2))
    network.feature_mean.copy_(torch.tensor([1.0, 2]))
    network.feature_scale.copy_(torch.tensor([2.0, 0.5]))
    assert network.vertices(torch.tensor([[2.0, 4]])).tolist() == [[2, 1]]


def test_with_a_metric_the_result_is_the_vertex_part_of_a_graph_network():
    graph = RoiGcn(GcnConfig(in_dim=4, vertex_dim=2, hidden_dim=3, out_dim=2)).eval()
    mean = make_graph_network(vertex_mean_config(4, 2))
    for network in (graph, mean):
        network.feature_scale.copy_(torch.tensor([1.0, 2, 3, 4]))
        network.metric.copy_(torch.arange(8.0).reshape(4, 2))
    x, edges = torch.randn(3, 4) * 5, torch.zeros(2, 0, dtype=torch.int64)
    batch = torch.tensor([0, 0, 1])
    assert torch.equal(mean(x, edges, batch), graph(x, edges, batch)[:, :2])
    assert mean.config.embedding_dim == 2


def test_a_configuration_with_layers_creates_a_graph_network():
    assert isinstance(make_graph_network(GcnConfig()), RoiGcn)
