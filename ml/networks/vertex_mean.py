"""Mean of the vertices of a region, for encoders without a graph part."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ml.networks.gcn import CLIP, MIN_LENGTH, GcnConfig, RoiGcn, mean_of_graphs


class VertexMean(nn.Module):
    """Mean of standardised vertices, scaled to unit length; without trainable parameters.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers that standardise the features.
        metric: (in_dim, vertex_dim) buffer as in ``RoiGcn``; None if vertex_dim is in_dim.
    """

    feature_mean: Tensor
    feature_scale: Tensor
    metric: Tensor | None

    def __init__(self, config: GcnConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("feature_mean", torch.zeros(config.in_dim))
        self.register_buffer("feature_scale", torch.ones(config.in_dim))
        has_metric = config.vertex_dim < config.in_dim
        self.register_buffer(
            "metric", torch.eye(config.in_dim, config.vertex_dim) if has_metric else None
        )

    def vertices(self, x: Tensor) -> Tensor:
        """Map raw features (N, in_dim) to standardised ones (N, vertex_dim) in the metric."""
        standardised = (x - self.feature_mean) * self.feature_scale
        return (
            standardised if self.metric is None else standardised.clamp(-CLIP, CLIP) @ self.metric
        )

    def parts(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Contributions (N, vertex_dim) of the vertices, whose mean is the embedding."""
        vertices = self.vertices(x)
        length: Tensor = vertices.mean(dim=0).norm().clamp_min(MIN_LENGTH)
        return vertices / length

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Map features (N, in_dim) and the graph (N,) of each vertex to (B, vertex_dim)."""
        return normalize(mean_of_graphs(self.vertices(x), batch), dim=1)


def vertex_mean_config(dim: int, vertex_dim: int | None = None) -> GcnConfig:
    """Configuration of a ``VertexMean`` over features of length ``dim``.

    Args:
        vertex_dim: Output length of a learned metric; None for no metric.
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
    """Create the network of a configuration: a ``VertexMean`` if it has no layers."""
    return RoiGcn(config) if config.layers else VertexMean(config)
