"""Encoders of regions whose context part comes from a graph network with pooling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ml.networks.gcn import MIN_LENGTH, GcnConfig, RoiGcn


class RoiPooled(RoiGcn):
    """Mean of the vertices, concatenated with the vector of a network that pools vertices.

    Args:
        config: ``layers`` is not used.
        network: "diffpool" or "topk", see ``make_graph_encoder``.
    Source: the retrieval paper, sections III-C2 and III-C3, with the skip connection of
        ``RoiGcn``.
    """

    def __init__(self, config: GcnConfig, network: str) -> None:
        # Imported here, as it takes seconds and encoders without a graph part need this module.
        from ml.networks.graph_encoders import make_graph_encoder

        super().__init__(config)
        self.name = network
        self.convs = nn.ModuleList()
        self.pooled = make_graph_encoder(
            network, in_dim=config.vertex_dim, hidden_dim=config.hidden_dim, out_dim=config.out_dim
        )

    def context(self, vertices: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Map vertices (N, vertex_dim) to the context part (B, out_dim)."""
        return torch.as_tensor(self.pooled(vertices, edge_index, batch))

    def parts(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Contributions of the vertices to the embedding of one graph; their mean is the embedding.

        The context part is not a sum over vertices, so all of them have the same share of it.

        Args:
            x, edge_index: As in ``forward``, of one graph.
        Returns:
            (N, vertex_dim + out_dim) float32.
        """
        vertices = self.vertices(x)
        length = vertices.mean(dim=0).norm().clamp_min(MIN_LENGTH)
        pooled = self(x, edge_index, torch.zeros(len(x), dtype=torch.int64))
        context = pooled[:, vertices.shape[1] :].expand(len(x), -1)
        return torch.cat([vertices / length, context], dim=1)
