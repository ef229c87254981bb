"""Training of ``triplet``, and its tuning to one sequence without labels.

Run it by ``python -m ml train triplet --data DATA`` or, to tune, ``python -m ml train triplet
--sequence FRAMES --from weights.safetensors``. Every epoch and every data set draws from a
generator of its own, so an interrupted run ends with the same weights.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ml.config import config_hash
from ml.errors import WeightsError
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.keypoints.descriptors.learned_weights import (
    StoredDescriptor,
    read_descriptor,
    save_descriptor,
)
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig
from ml.training.descriptors.card import SHARES, write_training
from ml.training.descriptors.losses import (
    TripletShares,
    adaptive_triplet,
    mean_adaptive_triplet,
    triplet_shares,
)
from ml.training.descriptors.run import (
    Checkpoint,
    add_run_arguments,
    config_of,
    data_folder,
    write_log,
    write_loss_plot,
)
from ml.training.descriptors.triplets import (
    PerspectiveConfig,
    TripletSet,
    as_patches,
    draw_triplets,
    random_negatives,
    still_batches,
)
from ml.training.descriptors.validate import validate
from ml.training.descriptors.views import (
    Still,
    StillsConfig,
    ViewConfig,
    read_sequence,
    read_stills,
)
from ml.training.roi.encoder import one_thread
from ml.types import Progress, no_progress


@dataclass(frozen=True, slots=True)
class TripletConfig:
    """One run of ``triplet``."""

    name: str = "triplet"  # of the descriptor
    version: str = "1.0"  # of the descriptor
    ratio: float = 0.95  # ratio test that goes with it
    network: TripletCnnConfig = field(default_factory=TripletCnnConfig)
    stills: StillsConfig = field(default_factory=StillsConfig)
    perspective: PerspectiveConfig = field(default_factory=PerspectiveConfig)
    light: ViewConfig = field(default_factory=ViewConfig)  # its photometric part
    triplets: int = 480  # of a data set; the paper has 300 key points, "over 15000" triplets
    epochs: int = 100  # 250 in section 3.2; five data sets here as there
    renew_every: int = 20  # epochs a data set is used for; 50 in section 3.2
    batch: int = 36  # section 3.2
    by_still: bool = False  # batches of patches of one still; False: of any
    all_negatives: bool = False  # the mean over all draws of a negative; False: one draw
    learning_rate: float = 0.01  # ten times section 3.2: with the hinge few triplets still count
    decay: bool = False  # to zero by a cosine; section 3.2 calls its rate the initial one
    momentum: float = 0.9  # section 3.2
    hinge: bool = True  # see keypoint_losses.adaptive_triplet; the paper prints none
    checkpoint_every: int = 2  # epochs
    seed: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train triplet``."""
    add_run_arguments(parser)
    parser.add_argument("--sequence", type=Path, help="frames or a video to tune to, no labels")
    parser.add_argument("--from", dest="start", type=Path, help="weights to start from")
    parser.add_argument("--epochs", type=int, help="other than the configuration's")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_triplet``."""
    config = config_of(TripletConfig, args.config)
    if args.epochs is not None:
        config = dataclasses.replace(config, epochs=args.epochs)
    held_out: list[Still] = []
    if args.sequence is not None:
        stills = read_sequence(args.sequence, config.stills)
    else:
        stills, held_out = read_stills(data_folder(args.data), config.stills, progress=progress)
    return train_triplet(
        config,
        stills,
        held_out,
        out=args.out,
        weights=args.weights,
        start=args.start,
        card=args.card,
        progress=progress,
    )


def train_triplet(
    config: TripletConfig,
    stills: Sequence[Still],
    held_out: Sequence[Still] = (),
    *,
    out: Path,
    weights: Path | None = None,
    start: Path | None = None,
    card: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train ``triplet``, going on from a checkpoint in ``out`` if there is one.

    Writes the weights, ``log.json`` and the plots ``loss.png`` and ``shares.png``.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        held_out: stills for shares and validation only; may be empty.
        weights: file to write, by default ``out/<name>.safetensors``.
        start: weights to start from.
        card: model card whose figures of training are written anew.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: losses, shares at start and end, validation, hash, file.
    Source: adaptive-triplet-endoscopic-matching, sections 2.2, 3.2 and 3.3.1.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with one_thread():
        training = TripletRun(config, stills, held_out, out / "checkpoint.pt", start)
        history = training.train(progress)
    weights = weights or out / f"{config.name}.safetensors"
    stored = StoredDescriptor(config.name, config.version, config.ratio, training.network, None)
    save_descriptor(weights, stored)
    shares = [name for name in history if name.endswith(SHARES)]
    summary = {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config_hash": config_hash(config),
        "stills": len(stills),
        "held_out": len(held_out),
        "loss_first": history["loss"][0] if history["loss"] else None,
        "loss_last": history["loss"][-1] if history["loss"] else None,
        "shares": {name: [history[name][0], history[name][-1]] for name in shares if history[name]},
        "validation": validate(descriptor_from_file(weights), held_out) if held_out else {},
        "seconds": time.perf_counter() - started,
    }
    write_log(out, config, history, **summary)
    if card is not None:
        write_training(card, summary, history, held_out)
    write_loss_plot(out / "loss.png", {"loss": history["loss"]}, x="epoch", y="loss a triplet")
    lines = {name.replace("_", " "): history[name] for name in shares}
    write_loss_plot(out / "shares.png", lines, x="epoch", y="share of triplets")
    return {**summary, "train_config": dataclasses.asdict(config)}


class TripletRun:
    """State of a run: network, optimiser, the data set in use, losses and shares so far."""

    def __init__(
        self,
        config: TripletConfig,
        stills: Sequence[Still],
        held_out: Sequence[Still],
        checkpoint: Path,
        start: Path | None = None,
    ) -> None:
        self.config, self.stills, self.held_out = config, stills, held_out
        torch.manual_seed(config.seed)
        self.network = TripletCnn(config.network)
        if start is not None:
            _load(self.network, start)
        self.optimiser = torch.optim.SGD(
            self.network.parameters(), lr=config.learning_rate, momentum=config.momentum
        )
        self.checkpoint = Checkpoint(
            checkpoint,
            config,
            modules={"network": self.network},
            optimiser=self.optimiser,
            start=start,
        )

    def train(self, progress: Progress) -> dict[str, list[Any]]:
        """Train the epochs that are left; returns loss and shares of every epoch."""
        config = self.config
        self.checkpoint.resume()
        history = self.checkpoint.history
        held = ["held_out_" + name for name in SHARES] if self.held_out else []
        for name in ("loss", *SHARES, *held):
            history.setdefault(name, [])
        current, triplets = -1, None
        watched = self._triplets(1 << 21, self.held_out) if self.held_out else None
        while len(history["loss"]) < config.epochs:
            epoch = len(history["loss"])
            if triplets is None or epoch // config.renew_every != current:
                current = epoch // config.renew_every
                triplets = self._triplets(current, self.stills)
            self._epoch(epoch, triplets, history)
            if watched is not None:
                self._watch(watched, history)
            done = epoch + 1
            if done % config.checkpoint_every == 0 or done == config.epochs:
                self.checkpoint.save()
            progress(done, config.epochs, f"training, easy {history['easy'][-1]:.3f}")
        return history

    def _triplets(self, number: int, stills: Sequence[Still]) -> TripletSet:
        return draw_triplets(
            np.random.default_rng((self.config.seed, 1 << 20, number)),
            stills,
            count=self.config.triplets,
            patch_px=self.config.network.patch_px,
            perspective=self.config.perspective,
            light=self.config.light,
        )

    def _epoch(self, epoch: int, triplets: TripletSet, history: dict[str, list[Any]]) -> None:
        config = self.config
        rng = np.random.default_rng((config.seed, epoch))
        if config.by_still:
            batches = still_batches(rng, triplets.still, config.batch)
        else:
            order = rng.permutation(len(triplets))
            batches = [order[i : i + config.batch] for i in range(0, len(order), config.batch)]
        for group in self.optimiser.param_groups:
            share = 0.5 * (1 + math.cos(math.pi * epoch / config.epochs)) if config.decay else 1.0
            group["lr"] = config.learning_rate * share
        total, shares, seen = 0.0, np.zeros(3), 0
        for batch in (rows for rows in batches if len(rows) > 1):
            anchor, positive, negative = self._embedded(triplets, batch, rng)
            if config.all_negatives:
                loss = mean_adaptive_triplet(anchor, positive, hinge=config.hinge)
            else:
                loss = adaptive_triplet(anchor, positive, negative, hinge=config.hinge)
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            total, seen = total + float(loss.detach()), seen + len(batch)
            shares += len(batch) * _as_array(triplet_shares(anchor, positive, negative))
        history["loss"].append(total / seen)
        for name, share in zip(SHARES, shares / seen, strict=True):
            history[name].append(round(float(share), 5))

    def _watch(self, triplets: TripletSet, history: dict[str, list[Any]]) -> None:
        """Shares over held-out triplets, always the same ones."""
        rng = np.random.default_rng((self.config.seed, 1 << 22))
        with torch.no_grad():
            vectors = self._embedded(triplets, np.arange(len(triplets)), rng)
        for name, share in zip(SHARES, _as_array(triplet_shares(*vectors)), strict=True):
            history["held_out_" + name].append(round(float(share), 5))

    def _embedded(
        self, triplets: TripletSet, rows: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, positives and random negatives among both of the other triplets; (n, D) each."""
        chosen = torch.from_numpy(rows)
        both = torch.cat([triplets.anchors[chosen], triplets.positives[chosen]])
        vectors = self.network(as_patches(both))
        negative = vectors[torch.from_numpy(random_negatives(rng, len(rows)))]
        return vectors[: len(rows)], vectors[len(rows) :], negative


def _as_array(shares: TripletShares) -> np.ndarray:
    return np.array([shares.easy, shares.semi_hard, shares.hard])


def _load(network: TripletCnn, path: Path) -> None:
    stored = read_descriptor(path).network
    if not isinstance(stored, TripletCnn) or stored.config != network.config:
        raise WeightsError(
            f"{path.name}: holds {stored.config}, expected weights of {network.config}"
        )
    network.load_state_dict(stored.state_dict())
