"""Learner of a graph part by the arrangement of tissue."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ml.errors import UnknownNameError
from ml.networks.gcn import GcnConfig, ProjectionHead, RoiGcn
from ml.networks.roi_context import RoiPooled
from ml.networks.vertex_mean import VertexMean
from ml.roi.graph import RoiGraph
from ml.training.common.run import History
from ml.training.common.steps import descend
from ml.training.roi.arrangement.config import ARCHITECTURES, ArrangementConfig
from ml.training.roi.arrangement.views import rearranged_graph, view_of
from ml.training.roi.encoder.graph import batched_graphs
from ml.training.roi.losses import nt_xent

_MIN_STD = 1e-3
_CALIBRATION_SEED = 1 << 20  # different from those of the steps


class ResidualWeight(nn.Module):
    """Length of the context part relative to the vertex part, between 0 and 1."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(math.log(start / (1 - start))))

    def forward(self) -> Tensor:
        """Scalar weight."""
        return torch.sigmoid(self.logit)


class ArrangementLearner:
    """Graph network, projection head and weight of the context part over cached regions.

    Each region gives two views, each without a contiguous part and without random other vertices,
    and a negative whose parts are rearranged. The loss is NT-Xent over the projected context part,
    as in the paper, plus NT-Xent over the embedding itself, by which the weight is learned.

    Args:
        base: Encoder network without a graph part; its metric is kept.
        graphs: Regions with raw features.
        edge_px: Longest edge of a graph.
    Source: the retrieval paper, section III-B; departs from it by the contiguous part, the
        negatives and the second term.
    """

    def __init__(
        self,
        config: ArrangementConfig,
        base: VertexMean,
        graphs: Sequence[RoiGraph],
        *,
        edge_px: float,
    ) -> None:
        self.config, self.edge_px, self.batch = config, edge_px, config.batch
        self.network = make_network(config, base)
        with torch.no_grad():
            self.graphs = [
                dataclasses.replace(g, x=self.network.vertices(torch.from_numpy(g.x)).numpy())
                for g in graphs
            ]
        self.head = ProjectionHead(config.out_dim, config.out_dim, config.out_dim)
        self.weight = ResidualWeight(config.context_weight)
        self.modules = {"network": self.network, "head": self.head, "weight": self.weight}
        self.optimiser = torch.optim.AdamW(
            [p for module in self.modules.values() for p in module.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )

    def step(self, number: int, history: History) -> float:
        """Take a step over ``batch`` random regions."""
        config = self.config
        rng = np.random.default_rng((config.seed, number))
        rows = rng.permutation(len(self.graphs))[: self.batch]
        views = self._views(rows.tolist(), rng)
        vertex, context = self._parts(views)
        first, second, negatives = self.head(context).chunk(3)
        loss = nt_xent(first, second, temperature=config.temperature, negatives=negatives)
        spread = context.std(dim=0).clamp(min=_MIN_STD)
        unit = normalize((context - context.mean(dim=0)) / spread, dim=1)
        first, second, negatives = torch.cat([vertex, unit * self.weight()], dim=1).chunk(3)
        loss = loss + nt_xent(first, second, temperature=config.temperature, negatives=negatives)
        value = descend(self.optimiser, loss)
        history.setdefault("weight", []).append(float(self.weight().detach()))
        return value

    def finish(self) -> RoiGcn:
        """Set the buffers and the weight of the context part, and return the network."""
        rng = np.random.default_rng((self.config.seed, _CALIBRATION_SEED))
        views = [view_of(g, rng, cut=self.config.cut, drop=self.config.drop) for g in self.graphs]
        with torch.no_grad():
            _, context = self._parts(views)
            self.network.context_mean.copy_(context.mean(dim=0))
            self.network.context_scale.copy_(1 / context.std(dim=0).clamp(min=_MIN_STD))
            weight = round(float(self.weight()), 4)
        self.network.config = dataclasses.replace(self.network.config, context_weight=weight)
        return self.network.eval()

    def _views(self, rows: Sequence[int], rng: np.random.Generator) -> list[RoiGraph]:
        """(3 B) graphs: first views of B regions, then second views, then rearranged negatives."""
        config = self.config
        firsts: list[RoiGraph] = []
        seconds: list[RoiGraph] = []
        negatives: list[RoiGraph] = []
        for row in rows:
            graph = self.graphs[row]
            grid = int(rng.choice(config.grids))
            other = rearranged_graph(graph, rng, grid=grid, edge_px=self.edge_px)
            for view, source in ((firsts, graph), (seconds, graph), (negatives, other)):
                view.append(view_of(source, rng, cut=config.cut, drop=config.drop))
        return [*firsts, *seconds, *negatives]

    def _parts(self, views: Sequence[RoiGraph]) -> tuple[Tensor, Tensor]:
        """Mean vertices (B, vertex_dim) of unit length, and context parts (B, out_dim)."""
        vertices, edge_index, batch = batched_graphs(views)
        mean = torch.stack([torch.from_numpy(view.x).mean(dim=0) for view in views])
        return normalize(mean, dim=1), self.network.context(vertices, edge_index, batch)


def make_network(config: ArrangementConfig, base: VertexMean) -> RoiGcn:
    """Create a network with the standardisation and the metric of an encoder without a graph part.

    The metric is scaled so that vertices have unit deviation; the vertex part of the embedding is
    of unit length, so it is that of the encoder.

    Raises:
        UnknownNameError: Unknown architecture.
    """
    if config.architecture not in ARCHITECTURES:
        raise UnknownNameError("architecture", config.architecture, list(ARCHITECTURES))
    sizes = GcnConfig(
        in_dim=base.config.in_dim,
        vertex_dim=base.config.vertex_dim,
        hidden_dim=config.hidden_dim,
        out_dim=config.out_dim,
        context_weight=config.context_weight,
    )
    network = {
        "gcn": lambda: RoiGcn(sizes),
        "graphconv": lambda: RoiPooled(sizes, "topk"),
        "diffpool": lambda: RoiPooled(sizes, "diffpool"),
    }[config.architecture]()
    network.feature_mean.copy_(base.feature_mean)
    network.feature_scale.copy_(base.feature_scale)
    metric = base.metric if base.metric is not None else torch.eye(sizes.in_dim)
    network.metric.copy_(metric * math.sqrt(sizes.vertex_dim))
    return network
