"""Graph convolutions with top-k pooling of the vertices by a learned score."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphConv, TopKPooling, global_max_pool, global_mean_pool
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.nn.pool.select.topk import topk


@dataclass(frozen=True, slots=True)
class TopKConfig:
    """Sizes of a ``TopKEncoder``."""

    in_dim: int = 192
    hidden_dim: int = 64
    out_dim: int = 64
    levels: int = 3  # section IV-A
    ratio: float = 0.6  # share of the vertices after a pooling


class TopKEncoder(nn.Module):
    """Levels of graph convolution and pooling; mean and maximum of each, then a 2-layer MLP.

    Source: the retrieval paper, section III-C3, equation 7, and section IV-A.
    """

    def __init__(self, config: TopKConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_dim
        sizes = [config.in_dim, *[width] * (config.levels - 1)]
        self.convs = nn.ModuleList(GraphConv(size, width) for size in sizes)
        self.pools = nn.ModuleList(TopKPooling(width, config.ratio) for _ in sizes)
        self.mlp = nn.Sequential(
            nn.Linear(2 * width * config.levels, width), nn.ReLU(), nn.Linear(width, config.out_dim)
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """See ``DiffPoolEncoder.forward``."""
        count = int(batch.max()) + 1
        levels = []
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = torch.relu(conv(x, edge_index))
            x, edge_index, batch = pool_by_score(pool, x, edge_index, batch)
            levels += [global_mean_pool(x, batch, count), global_max_pool(x, batch, count)]
        return torch.as_tensor(self.mlp(torch.cat(levels, dim=1)))


def pool_by_score(
    pool: TopKPooling, x: Tensor, edge_index: Tensor, batch: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Pool like ``TopKPooling``, by the scores before their tanh.

    In float32 the tanh of many scores is 1, and which of them are kept would depend on the order of
    the vertices.
    """
    weight = pool.select.weight
    score = (x * weight).sum(dim=-1) / weight.norm(p=2, dim=-1)
    node_index = topk(score, pool.ratio, batch)
    selected = SelectOutput(
        node_index=node_index,
        num_nodes=x.shape[0],
        cluster_index=torch.arange(len(node_index), device=x.device),
        num_clusters=len(node_index),
        weight=torch.tanh(score)[node_index],
    )
    connected = pool.connect(selected, edge_index, None, batch)
    return (
        x[node_index] * torch.tanh(score)[node_index, None],
        connected.edge_index,
        connected.batch,
    )
