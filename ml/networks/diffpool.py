"""DiffPool over ROI graphs: two soft clusterings of the vertices, then the mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch


@dataclass(frozen=True, slots=True)
class DiffPoolConfig:
    """Sizes of a ``DiffPoolEncoder``."""

    in_dim: int = 192
    hidden_dim: int = 64
    out_dim: int = 64
    clusters: tuple[int, int] = (16, 4)  # after the first and the second pooling


class _SagePair(nn.Module):
    """Two consecutive SAGE convolutions."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.first = DenseSAGEConv(in_dim, hidden_dim)
        self.second = DenseSAGEConv(hidden_dim, out_dim)

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, in_dim) to (B, N, out_dim)."""
        x = torch.relu(self.first(x, adjacency, mask))
        return torch.as_tensor(self.second(x, adjacency, mask))


class DiffPoolEncoder(nn.Module):
    """Three levels with two poolings between; each subnetwork is two SAGE convolutions.

    Source: the retrieval paper, section III-C2, equations 5 and 6, and section IV-A.
    """

    def __init__(self, config: DiffPoolConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_dim
        self.features = nn.ModuleList(
            [
                _SagePair(config.in_dim, width, width),
                _SagePair(width, width, width),
                _SagePair(width, width, config.out_dim),
            ]
        )
        self.assignments = nn.ModuleList(
            [
                _SagePair(config.in_dim, width, config.clusters[0]),
                _SagePair(width, width, config.clusters[1]),
            ]
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Embed graphs.

        Args:
            x: (N, in_dim) vertices.
            edge_index: (2, M) int64.
            batch: (N,) int64, graph of each vertex, ascending.
        Returns:
            (B, out_dim).
        """
        dense, mask = to_dense_batch(x, batch)
        adjacency = to_dense_adj(edge_index, batch, max_num_nodes=dense.shape[1])
        present: Tensor | None = mask
        for level, assign in enumerate(self.assignments):
            pooled = torch.relu(self.features[level](dense, adjacency, present))
            clusters = assign(dense, adjacency, present)
            dense, adjacency, _, _ = dense_diff_pool(pooled, adjacency, clusters, present)
            present = None
        return torch.as_tensor(self.features[-1](dense, adjacency).mean(dim=1))
