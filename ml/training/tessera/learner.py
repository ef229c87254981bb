"""Learner of the default descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ml.errors import BadInputError
from ml.keypoints.descriptors.tessera import grid_of, read_tessera
from ml.networks.device import REFERENCE, Compute
from ml.networks.tessera_descriptor import TesseraNet
from ml.training.common.peers import peers
from ml.training.common.run import History
from ml.training.common.start import take_weights
from ml.training.common.steps import descend, half_cosine, set_rate
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.tessera.losses import contrastive, near_mask
from ml.training.tessera.pool import PolarPatchPairs, draw_pool
from ml.types import ImageU8

_HELD_OUT = 1 << 20
"""Seed of the held-out pairs, different from those of the rounds."""


class TesseraLearner:
    """Learner of the descriptor network; a step is a round."""

    def __init__(
        self,
        config: TesseraTrainConfig,
        stills: Sequence[ImageU8],
        held_out: Sequence[ImageU8] = (),
        *,
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        self.config, self.stills, self.compute = config, stills, compute
        self.batch = config.batch
        self.network = TesseraNet(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if start is not None:
            take_weights(self.network, read_tessera(start), start)
        self.network.to(compute.device)
        self.modules = {"network": self.network}
        self._held_out_batches = self._batches_of(held_out)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def step(self, number: int, history: History) -> float:
        """Draw a pool of pairs, learn from it in batches, and return the mean loss.

        The loss of fixed pairs of held-out stills is recorded as ``held_out``.
        """
        config = self.config
        rng = np.random.default_rng((config.seed, peers().draw_number(number)))
        grid = grid_of(config.network)
        parts = draw_pool(self.stills, rng, pool=config.pool, view=config.view, grid=grid)
        groups = [draw_groups(parts, rng, config.group) for _ in range(config.passes)]
        per_batch = max(1, self.batch // config.group)
        batches = [
            drawn[start : start + per_batch]
            for drawn in groups
            for start in range(0, len(drawn) - per_batch + 1, per_batch)
        ]
        batches = batches[: peers().minimum(len(batches))]
        if not batches:
            raise BadInputError(f"too few key points on the stills for a batch of {config.batch}")
        self.network.train()
        losses = [
            self._batch(
                parts, batch, (number + position / len(batches)) / config.rounds, len(batches)
            )
            for position, batch in enumerate(batches)
        ]
        if self._held_out_batches:
            history.setdefault("held_out", []).append(self._held_out_loss())
        return float(np.mean(losses))

    def _held_out_loss(self) -> float:
        self.network.eval()
        with torch.no_grad():
            losses = [
                float(self._loss(*self._descriptors(*batch))) for batch in self._held_out_batches
            ]
        return float(np.mean(losses))

    def _batches_of(
        self, stills: Sequence[ImageU8]
    ) -> list[tuple[list[PolarPatchPairs], list[tuple[int, np.ndarray]]]]:
        if not stills:
            return []
        config, rng = self.config, np.random.default_rng((self.config.seed, _HELD_OUT))
        grid = grid_of(config.network)
        parts = draw_pool(stills, rng, pool=config.pool, view=config.view, grid=grid)
        groups = draw_groups(parts, rng, config.group)
        size = max(1, config.batch // config.group)
        starts = range(0, len(groups) - size + 1, size)
        return [(parts, groups[start : start + size]) for start in starts]

    def _batch(
        self,
        parts: Sequence[PolarPatchPairs],
        batch: Sequence[tuple[int, np.ndarray]],
        share: float,
        n: int,
    ) -> float:
        set_rate(self.optimiser, self._learning_rate(share, n))
        return descend(self.optimiser, self._loss(*self._descriptors(parts, batch)))

    def _descriptors(
        self, parts: Sequence[PolarPatchPairs], batch: Sequence[tuple[int, np.ndarray]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(M, D) descriptors of both views, and (M, M) bool pairs that are not negatives."""
        config = self.config
        patches = [parts[i].a[rows] for i, rows in batch]
        patches += [parts[i].b[rows] for i, rows in batch]
        xy = self.compute.to_device(np.concatenate([parts[i].xy[rows] for i, rows in batch]))
        still = torch.cat([torch.full((len(rows),), parts[i].still) for i, rows in batch])
        ignored = near_mask(xy, still.to(xy.device), radius_px=config.near_px)
        x = self._to_device(patches)
        rows = self.network(
            x.contiguous(memory_format=torch.channels_last),
            half=torch.bfloat16 if config.bfloat16 else None,
        )
        half = len(rows) // 2
        return rows[:half], rows[half:], ignored

    def _to_device(self, patches: Sequence[np.ndarray | Tensor]) -> Tensor:
        """(N, 2, R, T) float32 on the device."""
        tensors = [part for part in patches if isinstance(part, Tensor)]
        if tensors:
            return torch.cat(tensors).to(self.compute.device).float()
        stacked = np.concatenate([np.asarray(part) for part in patches])
        return self.compute.to_device(stacked.astype(np.float32))

    def _loss(self, a: Tensor, b: Tensor, ignored: Tensor) -> Tensor:
        return contrastive(a, b, ignored, temperature=self.config.temperature)

    def _learning_rate(self, share: float, steps_a_round: int) -> float:
        config = self.config
        warm = config.warmup / max(1, config.rounds * steps_a_round)
        if share < warm:
            return config.learning_rate * (share + 0.02 * warm) / warm
        return config.learning_rate * half_cosine(share - warm, 1 - warm)


def draw_groups(
    parts: Sequence[PolarPatchPairs], rng: np.random.Generator, size: int
) -> list[tuple[int, np.ndarray]]:
    """Divide the rows of each part into groups of ``size``, with the parts in turn.

    Groups are random, except in local parts, which keep neighbours together: a descriptor confuses
    points 5 to 20 px apart along an edge, of which random groups hardly ever hold two.
    """
    turns: list[list[tuple[int, np.ndarray]]] = []
    for number, part in enumerate(parts):
        order = np.arange(len(part.xy)) if part.is_local else rng.permutation(len(part.xy))
        for turn, start in enumerate(range(0, len(order) - size + 1, size)):
            while len(turns) <= turn:
                turns.append([])
            turns[turn].append((number, order[start : start + size]))
    return [turn[i] for turn in turns for i in rng.permutation(len(turn))]
