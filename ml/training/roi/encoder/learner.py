"""The networks of the ROI encoder's training, and one step of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ml.networks.gcn import ProjectionHead, RoiGcn
from ml.networks.vertex_mean import VertexMean
from ml.roi.graph import build_graph
from ml.roi.weights import encoder_from_file
from ml.training.common.peers import peers
from ml.training.common.run import History
from ml.training.common.start import take_weights
from ml.training.common.steps import descend
from ml.training.roi.encoder.augment import vertex_dropout
from ml.training.roi.encoder.config import RoiTrainConfig
from ml.training.roi.encoder.metric import learn_metric
from ml.training.roi.encoder.pool import PatchPool, draw_region
from ml.training.roi.losses import nt_xent
from ml.types import ArrayF32, ArrayI64


def set_metric(
    network: RoiGcn | VertexMean, config: RoiTrainConfig, atlas: Sequence[ArrayF32]
) -> None:
    """Set the buffers that bring raw features into the vertex space.

    Args:
        atlas: (V, N, C) features of each patient: what the metric is learned from.
    """
    found = learn_metric(
        atlas,
        dim=config.encoder.network.vertex_dim,
        ridge=config.metric_ridge,
        power=config.metric_power,
    )
    network.feature_mean.copy_(torch.from_numpy(found.mean))
    network.feature_scale.copy_(torch.from_numpy(found.scale))
    if network.metric is not None:
        network.metric.copy_(torch.from_numpy(found.matrix))


class RoiLearner:
    """Network, projection head and optimiser over the pools of patches.

    Attributes:
        atlas: (V, N, C) features of each patient of the atlas: what the metric is learned from.
    """

    def __init__(
        self,
        config: RoiTrainConfig,
        pools: Sequence[PatchPool],
        atlas: Sequence[ArrayF32],
        *,
        start: Path | None = None,
    ) -> None:
        self.config, self.pools, self.atlas = config, pools, atlas
        self.trees = [cKDTree(pool.centre_px) for pool in pools]
        share = np.sqrt([len(pool) for pool in pools])
        self.share = share / share.sum()
        self.network = RoiGcn(config.encoder.network)
        if start is not None:
            take_weights(self.network, encoder_from_file(start).network, start)
        out_dim = config.encoder.network.out_dim
        self.head = ProjectionHead(out_dim, out_dim, config.head_dim)
        set_metric(self.network, config, atlas)
        self.modules = {"network": self.network, "head": self.head}
        self.optimiser = torch.optim.AdamW(
            [*self.network.parameters(), *self.head.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )

    def step(self, number: int, history: History) -> float:
        """One step over ``batch`` random regions, two views each."""
        rng = np.random.default_rng((self.config.seed, peers().drawn(number)))
        views: list[list[tuple[int, int, ArrayI64]]] = [[], []]
        for _ in range(self.config.batch):
            source, rows = self._region(rng)
            for view in views:
                look = int(rng.integers(self.config.looks))
                kept = vertex_dropout(rng, len(rows), drop=self.config.drop, keep_at_least=2)
                view.append((source, look, rows[kept]))
        first, second = (self._project(view) for view in views)
        return descend(self.optimiser, nt_xent(first, second, temperature=self.config.temperature))

    def calibrate(self) -> None:
        """Set the buffers that bring the context part to zero mean and unit deviation."""
        rng = np.random.default_rng((self.config.seed, 1 << 20))
        graphs = []
        for _ in range(self.config.calibration_regions):
            source, rows = self._region(rng)
            graphs.append((source, 0, rows))
        x, edge_index, batch = self._batch(graphs)
        with torch.no_grad():
            context = self.network.context(self.network.vertices(x), edge_index, batch)
            self.network.context_mean.copy_(context.mean(dim=0))
            self.network.context_scale.copy_(1 / context.std(dim=0).clamp(min=1e-3))

    def _region(self, rng: np.random.Generator) -> tuple[int, ArrayI64]:
        source = int(rng.choice(len(self.pools), p=self.share))
        rows = draw_region(
            self.pools[source],
            self.trees[source],
            rng,
            radius_px=self.config.radius_px,
            vertices=self.config.vertices,
        )
        return source, rows

    def _project(self, view: list[tuple[int, int, ArrayI64]]) -> Tensor:
        x, edge_index, batch = self._batch(view)
        context = self.network.context(self.network.vertices(x), edge_index, batch)
        return self.head(context)

    def _batch(self, graphs: list[tuple[int, int, ArrayI64]]) -> tuple[Tensor, Tensor, Tensor]:
        """(N, C) features, (2, M) edges and (N,) graph numbers of many graphs side by side."""
        x: list[ArrayF32] = []
        edges: list[ArrayI64] = []
        sizes: list[int] = []
        for source, look, rows in graphs:
            pool = self.pools[source]
            graph = build_graph(
                pool.features[look, rows],
                pool.centre_px[rows],
                edge_px=self.config.encoder.edge_px,
            )
            x.append(graph.x)
            edges.append(graph.edge_index + sum(sizes))
            sizes.append(len(graph))
        return (
            torch.from_numpy(np.concatenate(x)),
            torch.from_numpy(np.concatenate(edges, axis=1)),
            torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        )
