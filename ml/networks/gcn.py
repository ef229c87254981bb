"""The GCN encoder of ROI graphs, and the projection head it is trained with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, global_mean_pool


@dataclass(frozen=True, slots=True)
class GcnConfig:
    """Sizes of a ``RoiGcn``."""

    in_dim: int = 273  # features of a vertex
    hidden_dim: int = 128  # width of the inner layers
    out_dim: int = 64  # width of the last layer: the context part of the embedding
    layers: int = 2  # section IV-A
    context_weight: float = 0.5  # length of the context part against that of the vertex part

    @property
    def embedding_dim(self) -> int:
        """Length of the embedding: vertex part and context part side by side."""
        return self.in_dim + self.out_dim


class RoiGcn(nn.Module):
    """Stacked graph convolutions, averaged over the vertices, beside the averaged vertices.

    Source: the retrieval paper, section III-C1, equations 3 and 4; departs from it by the skip: the
        mean of the standardised, weighted vertex features stands beside the mean of the convolved
        ones, so that what the self-supervised task does not need is not lost.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers: x is standardised by them first.
        context_mean, context_scale: (out_dim,) buffers: the same for the convolved part.
    """

    feature_mean: Tensor
    feature_scale: Tensor
    context_mean: Tensor
    context_scale: Tensor

    def __init__(self, config: GcnConfig) -> None:
        super().__init__()
        self.config = config
        sizes = [config.in_dim, *[config.hidden_dim] * (config.layers - 1), config.out_dim]
        self.convs = nn.ModuleList(
            GCNConv(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        self.register_buffer("feature_mean", torch.zeros(config.in_dim))
        self.register_buffer("feature_scale", torch.ones(config.in_dim))
        self.register_buffer("context_mean", torch.zeros(config.out_dim))
        self.register_buffer("context_scale", torch.ones(config.out_dim))

    def standardised(self, x: Tensor) -> Tensor:
        """Vertex features (N, C) in units of the training data, weighted, clipped at 6."""
        return ((x - self.feature_mean) * self.feature_scale).clamp(-6, 6)

    def context(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Equations 3 and 4: (B, out_dim) of standardised features (N, C)."""
        for conv in self.convs:
            x = torch.relu(conv(x, edge_index))
        return global_mean_pool(x, batch)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Embed graphs.

        Args:
            x: (N, in_dim) float32 features of all vertices.
            edge_index: (2, M) int64.
            batch: (N,) int64, the graph of each vertex.
        Returns:
            (B, in_dim + out_dim) float32; Euclidean distance ranks.
        """
        x = self.standardised(x)
        vertex = global_mean_pool(x, batch)
        context = (self.context(x, edge_index, batch) - self.context_mean) * self.context_scale
        return torch.cat([vertex, context.clamp(-6, 6) * self.config.context_weight], dim=1)


class ProjectionHead(nn.Module):
    """Two linear layers with a ReLU between: the paper's head, dropped after training."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, out_dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_dim) to (B, out_dim)."""
        return self.layers(x)
