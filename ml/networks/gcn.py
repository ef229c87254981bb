"""The GCN encoder of ROI graphs, and the projection head it is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

CLIP = 6.0
"""Features are cut at this many standard deviations: beyond, they say nothing new."""
LEAST = 1e-12  # length below which nothing is divided, as in ``normalize``


@dataclass(frozen=True, slots=True)
class GcnConfig:
    """Sizes of a ``RoiGcn``."""

    in_dim: int = 273  # features of a vertex
    vertex_dim: int = 192  # vertex part of the embedding, after the learned metric
    hidden_dim: int = 128  # width of the inner layers
    out_dim: int = 64  # width of the last layer: the context part of the embedding
    layers: int = 2  # section IV-A
    power: float = 1.0  # of each averaged vertex number, the sign kept; 1 leaves it as it is
    context_weight: float = 0.35  # length of the context part, that of the vertex part being one

    @property
    def embedding_dim(self) -> int:
        """Length of the embedding: vertex part and context part side by side."""
        return self.vertex_dim + self.out_dim


class RoiGcn(nn.Module):
    """Stacked graph convolutions, averaged over the vertices, beside the averaged vertices.

    Source: the retrieval paper, section III-C1, equations 3 and 4; departs from it by the skip: the
        mean of the vertices, under a metric learned from the augmentations, stands beside the mean
        of the convolved ones, so that what the self-supervised task does not need is not lost; and
        by the unit length of both parts.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers: features are standardised by them.
        metric: (in_dim, vertex_dim) buffer: standardised features to the vertex space.
        context_mean, context_scale: (out_dim,) buffers: the convolved part is standardised by them.
    """

    feature_mean: Tensor
    feature_scale: Tensor
    metric: Tensor
    context_mean: Tensor
    context_scale: Tensor

    def __init__(self, config: GcnConfig) -> None:
        # The library loads for seconds; encoders without a graph part read ``GcnConfig`` too.
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.config = config
        sizes = [config.vertex_dim, *[config.hidden_dim] * (config.layers - 1), config.out_dim]
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in pairwise(sizes))
        self.register_buffer("feature_mean", torch.zeros(config.in_dim))
        self.register_buffer("feature_scale", torch.ones(config.in_dim))
        self.register_buffer("metric", torch.eye(config.in_dim, config.vertex_dim))
        self.register_buffer("context_mean", torch.zeros(config.out_dim))
        self.register_buffer("context_scale", torch.ones(config.out_dim))

    def vertices(self, x: Tensor) -> Tensor:
        """Raw features (N, in_dim), to vertices (N, vertex_dim) in the learned metric."""
        return ((x - self.feature_mean) * self.feature_scale).clamp(-CLIP, CLIP) @ self.metric

    def context(self, vertices: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Equations 3 and 4: vertices (N, vertex_dim) to (B, out_dim)."""
        return mean_of_graphs(self._convolved(vertices, edge_index), batch)

    def _convolved(self, vertices: Tensor, edge_index: Tensor) -> Tensor:
        x = vertices
        for conv in self.convs:
            x = torch.relu(conv(x, edge_index))
        return x

    def _damped(self, mean: Tensor) -> Tensor:
        """Keep a few large directions (an organ, a scanner) from deciding alone.

        Source: power normalisation (Perronnin, Sanchez and Mensink 2010), section 3.2.
        """
        if self.config.power == 1.0:
            return mean
        return mean.sign() * mean.abs().pow(self.config.power)

    def parts(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """What each vertex gives to the embedding of one graph: rows whose mean is the embedding.

        Power normalisation and both unit lengths are factors of the whole region, and are given to
        each of its rows alike. A row of the context part comes from a vertex and its neighbours.

        Args:
            x, edge_index: as ``forward``, of one graph.
        Returns:
            (N, vertex_dim + out_dim) float32.
        """
        vertices = self.vertices(x)
        mean = vertices.mean(dim=0)
        damped = self._damped(mean)
        factor = torch.where(mean == 0, torch.zeros_like(mean), damped / mean)
        own = vertices * factor / damped.norm().clamp_min(LEAST)
        context = (self._convolved(vertices, edge_index) - self.context_mean) * self.context_scale
        context = context / context.mean(dim=0).norm().clamp_min(LEAST)
        return torch.cat([own, context * self.config.context_weight], dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Embed graphs.

        Args:
            x: (N, in_dim) float32 raw features of all vertices.
            edge_index: (2, M) int64.
            batch: (N,) int64, the graph of each vertex.
        Returns:
            (B, vertex_dim + out_dim) float32; Euclidean distance ranks.
        """
        vertices = self.vertices(x)
        vertex = normalize(self._damped(mean_of_graphs(vertices, batch)), dim=1)
        context = self.context(vertices, edge_index, batch)
        context = normalize((context - self.context_mean) * self.context_scale, dim=1)
        return torch.cat([vertex, context * self.config.context_weight], dim=1)


def mean_of_graphs(x: Tensor, batch: Tensor) -> Tensor:
    """Average the vertices of each graph: (N, C) and the graph of each, (N,) int64, to (B, C).

    The sums and counts are those of PyTorch Geometric's ``global_mean_pool``, to the bit; a graph
    without vertices gives zeros.
    """
    graphs = int(batch.max()) + 1
    sums = x.new_zeros((graphs, x.shape[1])).scatter_add_(0, batch[:, None].expand_as(x), x)
    counts = x.new_zeros(graphs).scatter_add_(0, batch, torch.ones_like(x[:, 0]))
    return sums / counts.clamp(min=1)[:, None]


class ProjectionHead(nn.Module):
    """Two linear layers with a ReLU between: the paper's head, dropped after training."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, out_dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_dim) to (B, out_dim)."""
        result: Tensor = self.layers(x)
        return result
