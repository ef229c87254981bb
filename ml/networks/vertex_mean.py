"""The mean of a region's vertices: what an encoder without a trained graph part answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch_geometric.nn import global_mean_pool

from ml.networks.gcn import GcnConfig, RoiGcn


class VertexMean(nn.Module):
    """Standardised vertices, averaged, of unit length. It has nothing to train.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers; zeros and ones leave the features alone.
    """

    feature_mean: Tensor
    feature_scale: Tensor

    def __init__(self, config: GcnConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("feature_mean", torch.zeros(config.in_dim))
        self.register_buffer("feature_scale", torch.ones(config.in_dim))

    def vertices(self, x: Tensor) -> Tensor:
        """(N, in_dim) raw features to (N, in_dim) standardised ones."""
        return (x - self.feature_mean) * self.feature_scale

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """(N, in_dim) features, (2, M) edges and the graph of each vertex to (B, in_dim)."""
        return normalize(global_mean_pool(self.vertices(x), batch), dim=1)


def vertex_mean_config(dim: int) -> GcnConfig:
    """The configuration of a ``VertexMean`` over features of ``dim``: no layers, no context."""
    return GcnConfig(
        in_dim=dim, vertex_dim=dim, hidden_dim=0, out_dim=0, layers=0, context_weight=0.0
    )


def make_graph_network(config: GcnConfig) -> RoiGcn | VertexMean:
    """The network of a configuration: without layers the mean alone."""
    return RoiGcn(config) if config.layers else VertexMean(config)
