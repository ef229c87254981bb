"""The mean of a region's vertices: the vector of an encoder without a graph part."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ml.networks.gcn import CLIP, LEAST, GcnConfig, RoiGcn, mean_of_graphs


class VertexMean(nn.Module):
    """Standardised vertices, averaged, of unit length. It has nothing to train.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers; zeros and ones leave the features alone.
        metric: (in_dim, vertex_dim) buffer: as in a ``RoiGcn``, where vertices are shorter than
            features; None if they are the features.
    """

    feature_mean: Tensor
    feature_scale: Tensor
    metric: Tensor | None

    def __init__(self, config: GcnConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("feature_mean", torch.zeros(config.in_dim))
        self.register_buffer("feature_scale", torch.ones(config.in_dim))
        shortens = config.vertex_dim < config.in_dim
        self.register_buffer(
            "metric", torch.eye(config.in_dim, config.vertex_dim) if shortens else None
        )

    def vertices(self, x: Tensor) -> Tensor:
        """(N, in_dim) raw features to (N, vertex_dim) standardised ones, in the learned metric."""
        standard = (x - self.feature_mean) * self.feature_scale
        return standard if self.metric is None else standard.clamp(-CLIP, CLIP) @ self.metric

    def parts(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(N, in_dim) raw features of one graph to (N, vertex_dim), whose mean is its vector."""
        vertices = self.vertices(x)
        length: Tensor = vertices.mean(dim=0).norm().clamp_min(LEAST)
        return vertices / length

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """(N, in_dim) features, (2, M) edges and the graph of each vertex to (B, vertex_dim)."""
        return normalize(mean_of_graphs(self.vertices(x), batch), dim=1)


def vertex_mean_config(dim: int, vertex_dim: int | None = None) -> GcnConfig:
    """The configuration of a ``VertexMean`` over features of ``dim``: no layers, no context.

    Args:
        vertex_dim: of a learned metric; None for none.
    """
    return GcnConfig(
        in_dim=dim,
        vertex_dim=vertex_dim or dim,
        hidden_dim=0,
        out_dim=0,
        layers=0,
        context_weight=0.0,
    )


def make_graph_network(config: GcnConfig) -> RoiGcn | VertexMean:
    """The network of a configuration: without layers the mean alone."""
    return RoiGcn(config) if config.layers else VertexMean(config)
