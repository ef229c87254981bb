"""Learner of the triplet descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ml.keypoints.descriptors.learned_weights import read_descriptor
from ml.networks.device import REFERENCE, Compute
from ml.networks.triplet_cnn import TripletCnn
from ml.training.common.peers import peers
from ml.training.common.run import History
from ml.training.common.start import take_weights
from ml.training.common.steps import descend, half_cosine, set_rate
from ml.training.descriptors.card import SHARES
from ml.training.descriptors.losses import (
    TripletShares,
    adaptive_triplet,
    hardest_triplets,
    triplet_shares,
)
from ml.training.descriptors.triplet_config import TripletConfig
from ml.training.descriptors.triplets import (
    TripletSet,
    as_patches,
    draw_triplets,
    random_negatives,
    still_batches,
)
from ml.training.descriptors.views import KeypointStill
from ml.types import ArrayI64

_MINED_EASY = "mined_easy"
"""History key: share of easy triplets among the mined ones."""

_MAX_HELD_OUT = 2048
"""Largest number of held-out triplets, which are embedded at once."""

_HELD_OUT_SET, _HELD_OUT_NEGATIVES = 1 << 21, 1 << 22
"""Seeds of the draws from held-out stills, different from those of data sets and epochs."""


class TripletLearner:
    """Learner of the triplet network; a step is an epoch."""

    def __init__(
        self,
        config: TripletConfig,
        stills: Sequence[KeypointStill],
        held_out: Sequence[KeypointStill],
        *,
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        self.config, self.stills, self.device = config, stills, compute.device
        self.compute = compute
        self.batch = config.batch
        self.network = TripletCnn(config.network)
        if start is not None:
            take_weights(self.network, read_descriptor(start).network, start)
        self.network.to(self.device)
        self.modules = {"network": self.network}
        weights, rate = self.network.parameters(), config.learning_rate
        self.optimiser: torch.optim.Optimizer = (
            torch.optim.Adam(weights, lr=rate)
            if config.adam
            else torch.optim.SGD(weights, lr=rate, momentum=config.momentum)
        )
        self._drawn: tuple[int, TripletSet] | None = None
        self._held_out = (
            self._triplets(_HELD_OUT_SET, held_out, limit=_MAX_HELD_OUT) if held_out else None
        )

    def step(self, number: int, history: History) -> float:
        """Take an epoch over the current data set, and record the shares of its triplets."""
        round_number = number // self.config.renew_every
        if self._drawn is None or self._drawn[0] != round_number:
            self._drawn = (round_number, self._triplets(round_number, self.stills))
        min_margin = self._min_margin(history)
        loss, shares, easy = self._epoch(number, self._drawn[1], min_margin)
        _record(history, "", shares)
        history.setdefault(_MINED_EASY, []).append(round(easy, 5))
        if self._held_out is not None:
            _record(history, "held_out_", self._held_out_shares(self._held_out))
        return loss

    def _triplets(
        self, number: int, stills: Sequence[KeypointStill], *, limit: int | None = None
    ) -> TripletSet:
        count = self.config.triplets
        return draw_triplets(
            np.random.default_rng((self.config.seed, 1 << 20, number)),
            stills,
            count=count if limit is None else min(count, limit),
            patch_px=self.config.network.patch_px,
            perspective=self.config.perspective,
            light=self.config.light,
        )

    def _min_margin(self, history: History) -> float:
        """Smallest margin; zero once the share of easy triplets has settled."""
        easy = max(history.get(_MINED_EASY, []), default=0.0)
        return self.config.min_margin if easy < self.config.settled else 0.0

    def _epoch(
        self, epoch: int, triplets: TripletSet, min_margin: float
    ) -> tuple[float, np.ndarray, float]:
        """Mean loss, shares of kinds with random negatives, share of easy ones as learned."""
        config = self.config
        rng = np.random.default_rng((config.seed, peers().draw_number(epoch)))
        share = half_cosine(epoch, config.epochs) if config.decay else 1.0
        set_rate(self.optimiser, config.learning_rate * share)
        total, shares, easy, triplet_count = 0.0, np.zeros(3), 0.0, 0
        batches = self._batches(rng, triplets)
        for batch in batches[: peers().minimum(len(batches))]:
            anchor, positive, negative = self._embed(triplets, batch, rng)
            shares += len(batch) * _as_array(triplet_shares(anchor, positive, negative))
            if config.mined:
                anchor, positive, negative = hardest_triplets(anchor, positive)
            easy += len(batch) * triplet_shares(anchor, positive, negative).easy
            loss = adaptive_triplet(
                anchor, positive, negative, hinge=config.hinge, min_margin=min_margin
            )
            total, triplet_count = total + descend(self.optimiser, loss), triplet_count + len(batch)
        return total / triplet_count, shares / triplet_count, easy / triplet_count

    def _batches(self, rng: np.random.Generator, triplets: TripletSet) -> list[ArrayI64]:
        size = self.batch
        if self.config.by_still:
            batches = still_batches(rng, triplets.still, size)
        else:
            order = rng.permutation(len(triplets))
            batches = [order[i : i + size] for i in range(0, len(order), size)]
        return [rows for rows in batches if len(rows) > 1]  # a single image has no negatives

    def _held_out_shares(self, triplets: TripletSet) -> np.ndarray:
        """Shares of kinds over fixed held-out triplets."""
        rng = np.random.default_rng((self.config.seed, _HELD_OUT_NEGATIVES))
        with torch.no_grad():
            vectors = self._embed(triplets, np.arange(len(triplets)), rng)
        return _as_array(triplet_shares(*vectors))

    def _embed(
        self, triplets: TripletSet, rows: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, positives and random negatives of other triplets, (n, D) each."""
        chosen = torch.from_numpy(rows)
        both = torch.cat([triplets.anchors[chosen], triplets.positives[chosen]])
        with self.compute.training_precision():
            vectors = self.network(as_patches(both.to(self.device)))
        vectors = vectors.float()  # distances of the hardest triplets differ little
        chosen = torch.from_numpy(random_negatives(rng, len(rows))).to(self.device)
        negative = vectors[chosen]
        return vectors[: len(rows)], vectors[len(rows) :], negative


def _record(history: History, prefix: str, shares: np.ndarray) -> None:
    for name, share in zip(SHARES, shares, strict=True):
        history.setdefault(prefix + name, []).append(round(float(share), 5))


def _as_array(shares: TripletShares) -> np.ndarray:
    return np.array([shares.easy, shares.semi_hard, shares.hard])
