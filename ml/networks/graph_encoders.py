"""Graph encoders by name, for comparison: vertices in the learned metric to a vector per graph."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ml.errors import UnknownNameError
from ml.networks.diffpool import DiffPoolConfig, DiffPoolEncoder
from ml.networks.topk import TopKConfig, TopKEncoder

GRAPH_ENCODERS = ("mean", "gcn", "diffpool", "topk")


class GcnEncoder(nn.Module):
    """Two graph convolutions, then the mean: equations 3 and 4 of the retrieval paper."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            GCNConv(a, b, normalize=False) for a, b in pairwise((in_dim, hidden_dim, out_dim))
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """See ``DiffPoolEncoder.forward``."""
        # The same for both layers, so it is computed once.
        edges, weights = gcn_norm(edge_index, num_nodes=len(x), dtype=x.dtype)
        for conv in self.convs:
            x = torch.relu(conv(x, edges, weights))
        return torch.as_tensor(global_mean_pool(x, batch))


class MeanEncoder(nn.Module):
    """Two layers applied to each vertex, then the mean; ignores the edges."""

    def __init__(self, in_dim: int, hidden_dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, out_dim), nn.ReLU()
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """See ``DiffPoolEncoder.forward``; the edges are ignored."""
        return torch.as_tensor(global_mean_pool(self.layers(x), batch))


def make_graph_encoder(name: str, *, in_dim: int, hidden_dim: int, out_dim: int) -> nn.Module:
    """Create one of ``GRAPH_ENCODERS``, which maps (x, edge_index, batch) to (B, out_dim).

    Raises:
        UnknownNameError: Unknown name.
    """
    if name == "mean":
        return MeanEncoder(in_dim, hidden_dim, out_dim)
    if name == "gcn":
        return GcnEncoder(in_dim, hidden_dim, out_dim)
    if name == "diffpool":
        return DiffPoolEncoder(DiffPoolConfig(in_dim, hidden_dim, out_dim))
    if name == "topk":
        return TopKEncoder(TopKConfig(in_dim, hidden_dim, out_dim))
    raise UnknownNameError("graph encoder", name, list(GRAPH_ENCODERS))
