"""Learner of the ROI encoder's graph part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ml.networks.device import REFERENCE, Compute
from ml.networks.gcn import ProjectionHead, RoiGcn
from ml.networks.vertex_mean import VertexMean
from ml.roi.graph import build_graph
from ml.roi.weights import read_graph_encoder
from ml.training.common.held_out import evaluating, record_held_out
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

_View = tuple[int, int, ArrayI64]
"""View of a region: the index of its pool, of its look, and the sampled rows."""

_HELD_OUT = 1 << 21
"""Seed of the draws from held-out pools, different from those of the steps."""


def set_metric(
    network: RoiGcn | VertexMean, config: RoiTrainConfig, atlas: Sequence[ArrayF32]
) -> None:
    """Learn the metric, and set its buffers of a network.

    Args:
        atlas: (V, N, C) features of each patient.
    """
    learned = learn_metric(
        atlas,
        dim=config.encoder.network.vertex_dim,
        ridge=config.metric_ridge,
        power=config.metric_power,
    )
    network.feature_mean.copy_(torch.from_numpy(learned.mean))
    network.feature_scale.copy_(torch.from_numpy(learned.scale))
    if network.metric is not None:
        network.metric.copy_(torch.from_numpy(learned.matrix))


class _Regions:
    """Random regions of pools of patches."""

    def __init__(self, config: RoiTrainConfig, pools: Sequence[PatchPool]) -> None:
        self.config, self.pools = config, pools
        self.trees = [cKDTree(pool.centre_px) for pool in pools]
        share = np.sqrt([len(pool) for pool in pools])
        self.share = share / share.sum()

    def one(self, rng: np.random.Generator) -> tuple[int, ArrayI64]:
        """Draw a region: the number of a pool, and rows of it."""
        source = int(rng.choice(len(self.pools), p=self.share))
        rows = draw_region(
            self.pools[source],
            self.trees[source],
            rng,
            radius_px=self.config.radius_px,
            vertices=self.config.vertices,
        )
        return source, rows

    def views(self, rng: np.random.Generator, batch: int) -> tuple[list[_View], list[_View]]:
        """Two views each of ``batch`` regions."""
        views: tuple[list[_View], list[_View]] = ([], [])
        for _ in range(batch):
            source, rows = self.one(rng)
            for view in views:
                look = int(rng.integers(self.config.looks))
                vertices = vertex_dropout(rng, len(rows), drop=self.config.drop, keep_at_least=2)
                view.append((source, look, rows[vertices]))
        return views


class RoiLearner:
    """Network, projection head and optimiser over the pools of patches.

    Attributes:
        atlas: (V, N, C) features of each patient of the atlas, for the metric.
    """

    def __init__(
        self,
        config: RoiTrainConfig,
        pools: Sequence[PatchPool],
        atlas: Sequence[ArrayF32],
        *,
        start: Path | None = None,
        held_out: Sequence[PatchPool] = (),
        compute: Compute = REFERENCE,
    ) -> None:
        """Build networks and optimiser; ``held_out``: pools for validation."""
        self.config, self.atlas, self.compute = config, atlas, compute
        self.batch = config.batch
        self._learned = _Regions(config, pools)
        self._held_out = _Regions(config, held_out) if held_out else None
        self.network = RoiGcn(config.encoder.network)
        if start is not None:
            take_weights(self.network, read_graph_encoder(start).network, start)
        out_dim = config.encoder.network.out_dim
        self.head = ProjectionHead(out_dim, out_dim, config.head_dim)
        set_metric(self.network, config, atlas)
        self.modules = {"network": self.network, "head": self.head}
        for module in self.modules.values():
            module.to(compute.device)
        self.optimiser = torch.optim.AdamW(
            [*self.network.parameters(), *self.head.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )

    def step(self, number: int, history: History) -> float:
        """Take a step over ``batch`` random regions, two views each."""
        rng = np.random.default_rng((self.config.seed, peers().draw_number(number)))
        value = descend(self.optimiser, self._loss(self._learned, rng))
        if self._held_out is not None:
            record_held_out(history, number, partial(self._held_out_loss, self._held_out))
        return value

    def calibrate(self) -> None:
        """Set the buffers that bring the context part to zero mean and unit deviation."""
        rng = np.random.default_rng((self.config.seed, 1 << 20))
        graphs = []
        for _ in range(self.config.calibration_regions):
            source, rows = self._learned.one(rng)
            graphs.append((source, 0, rows))
        x, edge_index, batch = self._batch(self._learned.pools, graphs)
        with torch.no_grad():
            context = self.network.context(self.network.vertices(x), edge_index, batch)
            self.network.context_mean.copy_(context.mean(dim=0))
            self.network.context_scale.copy_(1 / context.std(dim=0).clamp(min=1e-3))

    def _held_out_loss(self, regions: _Regions) -> float:
        rng = np.random.default_rng((self.config.seed, _HELD_OUT))
        with evaluating(self.modules.values()):
            return float(self._loss(regions, rng))

    def _loss(self, regions: _Regions, rng: np.random.Generator) -> Tensor:
        first, second = (
            self._project(regions.pools, view) for view in regions.views(rng, self.batch)
        )
        return nt_xent(first, second, temperature=self.config.temperature)

    def _project(self, pools: Sequence[PatchPool], view: Sequence[_View]) -> Tensor:
        x, edge_index, batch = self._batch(pools, view)
        vertices = self.network.vertices(x)
        with self.compute.training_precision():
            projected: Tensor = self.head(self.network.context(vertices, edge_index, batch))
        return projected.float()

    def _batch(
        self, pools: Sequence[PatchPool], graphs: Sequence[_View]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(N, C) features, (2, M) edges and (N,) graph numbers of a batch."""
        x: list[ArrayF32] = []
        edges: list[ArrayI64] = []
        sizes: list[int] = []
        for source, look, rows in graphs:
            pool = pools[source]
            graph = build_graph(
                pool.features[look, rows],
                pool.centre_px[rows],
                edge_px=self.config.encoder.edge_px,
            )
            x.append(graph.x)
            edges.append(graph.edge_index + sum(sizes))
            sizes.append(len(graph))
        where = self.network.feature_mean.device
        return (
            torch.from_numpy(np.concatenate(x)).to(where),
            torch.from_numpy(np.concatenate(edges, axis=1)).to(where),
            torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(where),
        )
