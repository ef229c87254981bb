"""The network of ``triplet``'s training, and one epoch of it."""

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
"""Of the history: the share of easy triplets among those that are learned from."""

_WATCHED = 2048
"""Most held-out triplets whose shares each epoch records: they are embedded all at once."""

_HELD_OUT_SET, _HELD_OUT_NEGATIVES = 1 << 21, 1 << 22
"""Numbers that keep what is drawn of held-out stills apart from the data sets and the epochs."""


class TripletLearner:
    """Network and optimiser, and the data set in use; a step of the run is an epoch."""

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
        self._watched = self._triplets(_HELD_OUT_SET, held_out, most=_WATCHED) if held_out else None

    def step(self, number: int, history: History) -> float:
        """One epoch over the data set in use; records the shares of easy and hard triplets."""
        wanted = number // self.config.renew_every
        if self._drawn is None or self._drawn[0] != wanted:
            self._drawn = (wanted, self._triplets(wanted, self.stills))
        least = self._least_margin(history)
        loss, shares, easy = self._epoch(number, self._drawn[1], least)
        _record(history, "", shares)
        history.setdefault(_MINED_EASY, []).append(round(easy, 5))
        if self._watched is not None:
            _record(history, "held_out_", self._held_out_shares(self._watched))
        return loss

    def _triplets(
        self, number: int, stills: Sequence[KeypointStill], *, most: int | None = None
    ) -> TripletSet:
        count = self.config.triplets
        return draw_triplets(
            np.random.default_rng((self.config.seed, 1 << 20, number)),
            stills,
            count=count if most is None else min(count, most),
            patch_px=self.config.network.patch_px,
            perspective=self.config.perspective,
            light=self.config.light,
        )

    def _least_margin(self, history: History) -> float:
        """Zero once the share of easy triplets has settled."""
        easy = max(history.get(_MINED_EASY, []), default=0.0)
        return self.config.least_margin if easy < self.config.settled else 0.0

    def _epoch(
        self, epoch: int, triplets: TripletSet, least_margin: float
    ) -> tuple[float, np.ndarray, float]:
        """Loss a triplet; the shares of easy, semi-hard and hard ones among drawn negatives, and
        the share of easy ones among those that are learned from."""
        config = self.config
        rng = np.random.default_rng((config.seed, peers().drawn(epoch)))
        share = half_cosine(epoch, config.epochs) if config.decay else 1.0
        set_rate(self.optimiser, config.learning_rate * share)
        total, shares, easy, seen = 0.0, np.zeros(3), 0.0, 0
        batches = self._batches(rng, triplets)
        for batch in batches[: peers().least(len(batches))]:
            anchor, positive, negative = self._embedded(triplets, batch, rng)
            shares += len(batch) * _as_array(triplet_shares(anchor, positive, negative))
            if config.mined:
                anchor, positive, negative = hardest_triplets(anchor, positive)
            easy += len(batch) * triplet_shares(anchor, positive, negative).easy
            loss = adaptive_triplet(
                anchor, positive, negative, hinge=config.hinge, least_margin=least_margin
            )
            total, seen = total + descend(self.optimiser, loss), seen + len(batch)
        return total / seen, shares / seen, easy / seen

    def _batches(self, rng: np.random.Generator, triplets: TripletSet) -> list[ArrayI64]:
        size = self.batch
        if self.config.by_still:
            batches = still_batches(rng, triplets.still, size)
        else:
            order = rng.permutation(len(triplets))
            batches = [order[i : i + size] for i in range(0, len(order), size)]
        return [rows for rows in batches if len(rows) > 1]  # one alone has no negatives

    def _held_out_shares(self, triplets: TripletSet) -> np.ndarray:
        """Shares over held-out triplets, always the same ones."""
        rng = np.random.default_rng((self.config.seed, _HELD_OUT_NEGATIVES))
        with torch.no_grad():
            vectors = self._embedded(triplets, np.arange(len(triplets)), rng)
        return _as_array(triplet_shares(*vectors))

    def _embedded(
        self, triplets: TripletSet, rows: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, positives and random negatives out of the other triplets; (n, D) each."""
        chosen = torch.from_numpy(rows)
        both = torch.cat([triplets.anchors[chosen], triplets.positives[chosen]])
        with self.compute.learning():
            vectors = self.network(as_patches(both.to(self.device)))
        vectors = vectors.float()  # hardest triplets are told by small differences of distance
        chosen = torch.from_numpy(random_negatives(rng, len(rows))).to(self.device)
        negative = vectors[chosen]
        return vectors[: len(rows)], vectors[len(rows) :], negative


def _record(history: History, prefix: str, shares: np.ndarray) -> None:
    for name, share in zip(SHARES, shares, strict=True):
        history.setdefault(prefix + name, []).append(round(float(share), 5))


def _as_array(shares: TripletShares) -> np.ndarray:
    return np.array([shares.easy, shares.semi_hard, shares.hard])
