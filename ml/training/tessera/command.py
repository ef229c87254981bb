"""Self-supervised training of the default key point descriptor.

Run it by ``python -m ml train default``. Every round renews the pool of pairs from a generator of
its own, seeded by (seed, round), so an interrupted run ends with the same weights.
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

from ml.config import config_from_file, config_hash
from ml.errors import BadInputError
from ml.keypoints.descriptors.tessera import grid_of, save_tessera
from ml.networks.tessera_descriptor import TesseraConfig, TesseraNet
from ml.training.common.checkpoint import read_checkpoint, write_checkpoint
from ml.training.roi.encoder import one_thread
from ml.training.tessera.losses import contrastive, hardest_triplet, near_mask, second_order
from ml.training.tessera.pool import Part, PoolConfig, draw_pool, load_stills
from ml.training.tessera.views import TesseraViewConfig
from ml.types import ImageU8, Progress, no_progress


@dataclass(frozen=True, slots=True)
class TesseraTrainConfig:
    """One training run of the default descriptor."""

    name: str = "tessera"
    version: str = "2.0"
    source: str = "endoscopy/laparoscopy-stills"  # folder in the data folder
    held_out: tuple[str, ...] = ("00009", "00011")  # operations that never train: file prefixes
    blank: tuple[float, ...] = (0.0, 0.88, 0.3, 1.0, 0.84, 0.9, 1.0, 1.0)  # burnt-in text: boxes
    rounds: int = 28  # each renews the pool
    passes: int = 1  # over the pool of a round
    batch: int = 384  # pairs a step
    group: int = 96  # pairs of one still in a batch
    learning_rate: float = 3e-3  # AdamW, warmed up, then a half cosine
    warmup: int = 40  # steps
    weight_decay: float = 1e-4
    near_px: float = 3.0  # closer points of a still are no negatives of each other
    contrastive: float = 1.0  # weight of the cross entropy
    temperature: float = 0.05
    triplet: float = 0.0  # weight of the hardest-in-batch triplet loss
    margin: float = 1.0
    second_order: float = 0.0  # weight of the second-order similarity
    neighbours: int = 8  # of it
    bfloat16: bool = True  # convolutions in bfloat16 while training
    seed: int = 0
    pool: PoolConfig = field(default_factory=PoolConfig)
    view: TesseraViewConfig = field(default_factory=TesseraViewConfig)
    network: TesseraConfig = field(default_factory=TesseraConfig)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train default``."""
    parser.add_argument("--data", type=Path, required=True, help="folder the source is in")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_tessera``."""
    default = TesseraTrainConfig()
    config = config_from_file(default, args.config)
    return train_tessera(
        config, data=args.data, out=args.out, weights=args.weights, progress=progress
    )


def train_tessera(
    config: TesseraTrainConfig,
    *,
    data: Path,
    out: Path,
    weights: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train the descriptor, going on from a checkpoint in ``out`` if there is one.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        data: folder the source is relative to.
        weights: file of the descriptor, by default ``out/<name>.safetensors``.
        progress: may raise ``CancelledError``; the next run goes on from the last round.
    Returns:
        A plain summary: stills, rounds, losses, hash, file.
    Raises:
        BadInputError: no still to train on, or too few key points on them.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    stills = load_stills(training_files(config, data), _boxes(config.blank))
    with one_thread():
        run = TesseraRun(config, stills, out / "checkpoint.pt")
        run.resume()
        losses = run.train(progress)
    weights = weights or out / f"{config.name}.safetensors"
    save_tessera(weights, name=config.name, version=config.version, network=run.network)
    return {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config": dataclasses.asdict(config),
        "train_config_hash": config_hash(config),
        "stills": len(stills),
        "loss_by_round": [round(loss, 4) for loss in losses],
        "seconds": time.perf_counter() - started,
    }


def training_files(config: TesseraTrainConfig, data: Path) -> list[Path]:
    """The stills that train, in name order, without those of the operations held out."""
    return [
        path
        for path in sorted((data / config.source).glob("*.[jp][pn]g"))
        if not path.name.startswith(config.held_out)
    ]


class TesseraRun:
    """State of a run: network, optimiser, loss of each round so far."""

    def __init__(
        self, config: TesseraTrainConfig, stills: Sequence[ImageU8], checkpoint: Path
    ) -> None:
        self.config, self.stills, self.checkpoint = config, stills, checkpoint
        torch.manual_seed(config.seed)
        self.network = TesseraNet(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.losses: list[float] = []

    def train(self, progress: Progress) -> list[float]:
        """Take the rounds that are left; returns the mean loss of all."""
        while len(self.losses) < self.config.rounds:
            done = len(self.losses)
            self.losses.append(self._round(done))
            self.save()
            progress(done + 1, self.config.rounds, f"training, loss {self.losses[-1]:.3f}")
        self.network.eval()
        return self.losses

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "network": self.network.state_dict(),
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
        self.optimiser.load_state_dict(state["optimiser"])
        self.losses = list(state["losses"])

    def _round(self, number: int) -> float:
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
            self._step(parts, batch, (number + done / len(batches)) / config.rounds, len(batches))
            for done, batch in enumerate(batches)
        ]
        return float(np.mean(losses))

    def _step(
        self, parts: Sequence[Part], batch: Sequence[tuple[int, np.ndarray]], share: float, n: int
    ) -> float:
        config = self.config
        for group in self.optimiser.param_groups:
            group["lr"] = self._learning_rate(share, n)
        first = np.concatenate([parts[i].a[rows] for i, rows in batch])
        second = np.concatenate([parts[i].b[rows] for i, rows in batch])
        xy = torch.from_numpy(np.concatenate([parts[i].xy[rows] for i, rows in batch]))
        still = torch.cat([torch.full((len(rows),), parts[i].still) for i, rows in batch])
        ignored = near_mask(xy, still, radius_px=config.near_px)
        x = torch.from_numpy(np.concatenate([first, second]).astype(np.float32))
        rows = self.network(
            x.contiguous(memory_format=torch.channels_last), bfloat16=config.bfloat16
        )
        half = len(rows) // 2
        loss = self._loss(rows[:half], rows[half:], ignored)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

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
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (share - warm) / (1 - warm)))


def draw_groups(
    parts: Sequence[Part], rng: np.random.Generator, size: int
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


def _boxes(values: tuple[float, ...]) -> list[tuple[float, float, float, float]]:
    if len(values) % 4:
        raise BadInputError(f"blank: expected boxes of 4 numbers, got {len(values)} numbers")
    return [
        (values[i], values[i + 1], values[i + 2], values[i + 3]) for i in range(0, len(values), 4)
    ]
