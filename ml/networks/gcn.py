"""GCN encoder of ROI graphs, and its projection head for training."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

CLIP = 6.0
"""Features are clipped to this many standard deviations."""
MIN_LENGTH = 1e-12  # lower bound of a norm in a division, as in ``normalize``


@dataclass(frozen=True, slots=True)
class GcnConfig:
    """Sizes of a ``RoiGcn``."""

    in_dim: int = 273  # features of a vertex
    vertex_dim: int = 192  # vertex part of the embedding, in the learned metric
    hidden_dim: int = 128  # width of the inner layers
    out_dim: int = 64  # width of the last layer: the context part of the embedding
    layers: int = 2  # section IV-A
    power: float = 1.0  # exponent of power normalisation of the mean vertex; 1 for none
    context_weight: float = 0.35  # length of the context part; that of the vertex part is 1

    @property
    def embedding_dim(self) -> int:
        """Length of the embedding: vertex part and context part, concatenated."""
        return self.vertex_dim + self.out_dim


class RoiGcn(nn.Module):
    """Mean of the vertices, concatenated with the mean after graph convolutions.

    Source: the retrieval paper, section III-C1, equations 3 and 4; departs from it by the skip
        connection (the mean of the vertices in a metric learned from augmentations), which keeps
        information that the self-supervised task does not need, and by the unit length of both
        parts.

    Attributes:
        feature_mean, feature_scale: (in_dim,) buffers that standardise the features.
        metric: (in_dim, vertex_dim) buffer, standardised features to the vertex space.
        context_mean, context_scale: (out_dim,) buffers that standardise the context part.
    """

    feature_mean: Tensor
    feature_scale: Tensor
    metric: Tensor
    context_mean: Tensor
    context_scale: Tensor

    def __init__(self, config: GcnConfig) -> None:
        # Imported here, as it takes seconds and encoders without a graph part need ``GcnConfig``.
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
        """Map raw features (N, in_dim) to vertices (N, vertex_dim) in the learned metric."""
        return ((x - self.feature_mean) * self.feature_scale).clamp(-CLIP, CLIP) @ self.metric

    def context(self, vertices: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Map vertices (N, vertex_dim) to the context part (B, out_dim), equations 3 and 4."""
        return mean_of_graphs(self._convolve(vertices, edge_index), batch)

    def _convolve(self, vertices: Tensor, edge_index: Tensor) -> Tensor:
        x = vertices
        for conv in self.convs:
            x = torch.relu(conv(x, edge_index))
        return x

    def _power_normalise(self, mean: Tensor) -> Tensor:
        """Reduce the weight of a few large components (an organ, a scanner).

        Source: power normalisation (Perronnin, Sanchez and Mensink 2010), section 3.2.
        """
        if self.config.power == 1.0:
            return mean
        return mean.sign() * mean.abs().pow(self.config.power)

    def parts(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Contributions of the vertices to the embedding of one graph; their mean is the embedding.

        The factors of power normalisation and of both unit lengths are the same for all vertices. A
        row of the context part depends on a vertex and its neighbours.

        Args:
            x, edge_index: As in ``forward``, of one graph.
        Returns:
            (N, vertex_dim + out_dim) float32.
        """
        vertices = self.vertices(x)
        mean = vertices.mean(dim=0)
        normalised = self._power_normalise(mean)
        factor = torch.where(mean == 0, torch.zeros_like(mean), normalised / mean)
        vertex = vertices * factor / normalised.norm().clamp_min(MIN_LENGTH)
        context = (self._convolve(vertices, edge_index) - self.context_mean) * self.context_scale
        context = context / context.mean(dim=0).norm().clamp_min(MIN_LENGTH)
        return torch.cat([vertex, context * self.config.context_weight], dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Embed graphs.

        Args:
            x: (N, in_dim) float32 raw features of all vertices.
            edge_index: (2, M) int64.
            batch: (N,) int64, graph of each vertex.
        Returns:
            (B, vertex_dim + out_dim) float32, compared by Euclidean distance.
        """
        vertices = self.vertices(x)
        vertex = normalize(self._power_normalise(mean_of_graphs(vertices, batch)), dim=1)
        context = self.context(vertices, edge_index, batch)
        context = normalize((context - self.context_mean) * self.context_scale, dim=1)
        return torch.cat([vertex, context * self.config.context_weight], dim=1)


def mean_of_graphs(x: Tensor, batch: Tensor) -> Tensor:
    """Average the vertices (N, C) of each graph, given by ``batch`` (N,) int64, to (B, C).

    Equal to PyTorch Geometric's ``global_mean_pool`` to the bit; zeros for an empty graph.
    """
    graphs = int(batch.max()) + 1
    sums = x.new_zeros((graphs, x.shape[1])).scatter_add_(0, batch[:, None].expand_as(x), x)
    counts = x.new_zeros(graphs).scatter_add_(0, batch, torch.ones_like(x[:, 0]))
    return sums / counts.clamp(min=1)[:, None]


class ProjectionHead(nn.Module):
    """Two linear layers with a ReLU, as in the paper; not used after training."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, out_dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_dim) to (B, out_dim)."""
        result: Tensor = self.layers(x)
        return result
