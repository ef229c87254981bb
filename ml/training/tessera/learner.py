"""The network of the default descriptor's training, and one round of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ml.errors import BadInputError
from ml.keypoints.descriptors.tessera import grid_of
from ml.networks.device import REFERENCE, Compute
from ml.networks.tessera_descriptor import TesseraNet
from ml.training.common.run import History
from ml.training.common.steps import descend, half_cosine, set_rate
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.tessera.losses import contrastive, hardest_triplet, near_mask, second_order
from ml.training.tessera.pool import PolarPatchPairs, draw_pool
from ml.types import ImageU8


class TesseraLearner:
    """Network and optimiser over stills; a step of the run is a round."""

    def __init__(
        self,
        config: TesseraTrainConfig,
        stills: Sequence[ImageU8],
        *,
        compute: Compute = REFERENCE,
    ) -> None:
        self.config, self.stills, self.compute = config, stills, compute
        self.network = TesseraNet(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network.to(compute.device)
        self.modules = {"network": self.network}
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def step(self, number: int, history: History) -> float:
        """One round: a new pool of pairs, passed over in batches; returns their mean loss."""
        config = self.config
        rng = np.random.default_rng((config.seed, number))
        grid = grid_of(config.network)
        parts = draw_pool(self.stills, rng, pool=config.pool, view=config.view, grid=grid)
        groups = [draw_groups(parts, rng, config.group) for _ in range(config.passes)]
        per_batch = max(1, config.batch // config.group)
        batches = [
            drawn[start : start + per_batch]
            for drawn in groups
            for start in range(0, len(drawn) - per_batch + 1, per_batch)
        ]
        if not batches:
            raise BadInputError(f"too few key points on the stills for a batch of {config.batch}")
        self.network.train()
        losses = [
            self._batch(parts, batch, (number + done / len(batches)) / config.rounds, len(batches))
            for done, batch in enumerate(batches)
        ]
        return float(np.mean(losses))

    def _batch(
        self,
        parts: Sequence[PolarPatchPairs],
        batch: Sequence[tuple[int, np.ndarray]],
        share: float,
        n: int,
    ) -> float:
        config = self.config
        set_rate(self.optimiser, self._learning_rate(share, n))
        first = np.concatenate([parts[i].a[rows] for i, rows in batch])
        second = np.concatenate([parts[i].b[rows] for i, rows in batch])
        xy = self.compute.sent(np.concatenate([parts[i].xy[rows] for i, rows in batch]))
        still = torch.cat([torch.full((len(rows),), parts[i].still) for i, rows in batch])
        ignored = near_mask(xy, still.to(xy.device), radius_px=config.near_px)
        x = self.compute.sent(np.concatenate([first, second]).astype(np.float32))
        rows = self.network(
            x.contiguous(memory_format=torch.channels_last),
            half=torch.bfloat16 if config.bfloat16 else None,
        )
        half = len(rows) // 2
        return descend(self.optimiser, self._loss(rows[:half], rows[half:], ignored))

    def _loss(self, a: Tensor, b: Tensor, ignored: Tensor) -> Tensor:
        config = self.config
        loss = a.new_zeros(())
        if config.contrastive:
            loss = loss + config.contrastive * contrastive(
                a, b, ignored, temperature=config.temperature
            )
        if config.triplet:
            loss = loss + config.triplet * hardest_triplet(a, b, ignored, margin=config.margin)
        if config.second_order:
            loss = loss + config.second_order * second_order(a, b, neighbours=config.neighbours)
        return loss

    def _learning_rate(self, share: float, steps_a_round: int) -> float:
        config = self.config
        warm = config.warmup / max(1, config.rounds * steps_a_round)
        if share < warm:
            return config.learning_rate * (share + 0.02 * warm) / warm
        return config.learning_rate * half_cosine(share - warm, 1 - warm)


def draw_groups(
    parts: Sequence[PolarPatchPairs], rng: np.random.Generator, size: int
) -> list[tuple[int, np.ndarray]]:
    """Rows of each part in groups of ``size``, in an order where parts come in turn.

    Groups are random, but of a local part they stay together: points 5 to 20 px apart along one
    edge are what a descriptor confuses, and random groups hardly ever hold two of them.
    """
    turns: list[list[tuple[int, np.ndarray]]] = []
    for number, part in enumerate(parts):
        order = np.arange(len(part.xy)) if part.is_local else rng.permutation(len(part.xy))
        for turn, start in enumerate(range(0, len(order) - size + 1, size)):
            while len(turns) <= turn:
                turns.append([])
            turns[turn].append((number, order[start : start + size]))
    return [turn[i] for turn in turns for i in rng.permutation(len(turn))]
