"""State and steps of one training run of the ROI encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ml.networks.gcn import ProjectionHead, RoiGcn
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.graph import build_graph
from ml.training.common.checkpoint import read_checkpoint, write_checkpoint
from ml.training.roi.augment import vertex_dropout
from ml.training.roi.encoder_config import RoiTrainConfig
from ml.training.roi.losses import nt_xent
from ml.training.roi.metric import learn_metric
from ml.training.roi.pool import PatchPool, draw_region
from ml.types import ArrayF32, ArrayI64, Progress


class RoiRun:
    """State of a run: network, head, optimiser, step, losses."""

    def __init__(
        self,
        config: RoiTrainConfig,
        pools: list[PatchPool],
        checkpoint: Path,
        patches: PatchEncoder,
    ) -> None:
        self.patches = patches
        self.config, self.pools, self.checkpoint = config, pools, checkpoint
        self.trees = [cKDTree(pool.centre_px) for pool in pools]
        share = np.sqrt([len(pool) for pool in pools])
        self.share = share / share.sum()
        torch.manual_seed(config.seed)
        self.network = RoiGcn(config.encoder.network)
        out_dim = config.encoder.network.out_dim
        self.head = ProjectionHead(out_dim, out_dim, config.head_dim)
        self._set_metric()
        self.optimiser = torch.optim.AdamW(
            [*self.network.parameters(), *self.head.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self.losses: list[float] = []

    def train(self, progress: Progress) -> list[float]:
        """Take the steps that are left; returns the losses of all."""
        config = self.config
        while len(self.losses) < config.steps:
            self.losses.append(self._step(len(self.losses)))
            done = len(self.losses)
            if done % config.checkpoint_every == 0 or done == config.steps:
                self.save()
            progress(done, config.steps, f"training, loss {self.losses[-1]:.3f}")
        return self.losses

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

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "network": self.network.state_dict(),
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "losses": self.losses,
        }
        write_checkpoint(self.checkpoint, self.config, state)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one.

        Raises:
            BadInputError: it belongs to another configuration.
        """
        state = read_checkpoint(self.checkpoint, self.config)
        if state is None:
            return
        self.network.load_state_dict(state["network"])
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.losses = list(state["losses"])

    def _set_metric(self) -> None:
        """Set the buffers that bring raw features into the vertex space."""
        metric = learn_metric(
            [pool.features for pool in self.pools],
            self.share,
            block_scale=self.patches.scale,
            alike=self.patches.alike,
            dim=self.config.encoder.network.vertex_dim,
            ridge=self.config.metric_ridge,
        )
        self.network.feature_mean.copy_(torch.from_numpy(metric.mean))
        self.network.feature_scale.copy_(torch.from_numpy(metric.scale))
        self.network.metric.copy_(torch.from_numpy(metric.matrix))

    def _step(self, step: int) -> float:
        rng = np.random.default_rng((self.config.seed, step))
        views: list[list[tuple[int, int, ArrayI64]]] = [[], []]
        for _ in range(self.config.batch):
            source, rows = self._region(rng)
            for view in views:
                look = int(rng.integers(self.config.looks))
                kept = vertex_dropout(rng, len(rows), drop=self.config.drop, keep_at_least=2)
                view.append((source, look, rows[kept]))
        first, second = (self._project(view) for view in views)
        loss = nt_xent(first, second, temperature=self.config.temperature)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return float(loss.detach())

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
