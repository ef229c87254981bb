"""Training of the patch encoder without labels: two views of one piece of tissue, and many others.

Run it by ``python -m ml train patches``.
"""

from __future__ import annotations

import argparse
import copy
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.networks.device import REFERENCE, Compute
from ml.networks.patch_cnn import PatchCnn
from ml.roi.encoders.patch_cnn import load_patch_cnn, save_patch_cnn
from ml.training.common.peers import peers
from ml.training.common.run import History, RunSummary, TrainingRun, add_run_arguments
from ml.training.common.start import take_weights
from ml.training.common.steps import descend, set_rate
from ml.training.common.watch import looking, watch
from ml.training.roi.patches.blocks import WATCHED, Blocks, read_blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.roi.patches.ssl import Scheme
from ml.training.roi.patches.views import draw_pair, restained
from ml.types import Progress

_HELD_OUT = 1 << 30
"""The number that held-out views are drawn by: no run has this many steps."""


class PatchSummary(RunSummary):
    """What a training of the patch encoder returns: patients and blocks of tissue it saw."""

    patients: int
    blocks: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train patches``."""
    add_run_arguments(parser, has_start=True)


def run(args: argparse.Namespace, progress: Progress) -> PatchSummary:
    """Train by command line arguments; see ``train_patches``."""
    config = config_from_file(PatchTrainConfig(), args.config)
    run = TrainingRun.of(args, config, progress)
    return train_patches(run, data=args.data)


def train_patches(run: TrainingRun[PatchTrainConfig], *, data: Path) -> PatchSummary:
    """Train a patch encoder.

    Args:
        run: continues from its checkpoint, if there is one; otherwise from ``run.start``, if given.
        data: folder the sources are relative to.
    """
    config = run.config
    blocks = read_blocks(
        data, data / config.atlas if config.atlas else None, config.slides, run.progress
    )
    with run.learning():
        learner = PatchLearner(
            config,
            TissueViews(config, blocks),
            held_out=_held_out_views(config, data, run),
            start=run.start,
            compute=run.compute,
        )
        run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
    save_patch_cnn(
        run.weights, name=config.name, version=config.version, network=learner.average.eval()
    )
    summary: PatchSummary = {
        **run.summary(),
        "patients": len(blocks.of_patient),
        "blocks": len(blocks),
    }
    run.write_log(summary)
    return summary


class Views(Protocol):
    """Draws the batch of a step: (2 * batch, 3, crop, crop)."""

    batch: int

    def __call__(self, step: int) -> Tensor:
        """Row i and row ``batch`` + i are of one example."""


class TissueViews:
    """Draws the batch of a step."""

    def __init__(self, config: PatchTrainConfig, blocks: Blocks) -> None:
        self.config, self.blocks, self.batch = config, blocks, config.batch
        share = np.array([len(own) for own in blocks.of_patient]) ** config.patient_power
        self.share = share / share.sum()

    def __call__(self, step: int) -> Tensor:
        """(2 * batch, 3, crop, crop): row i and row batch + i are of one example."""
        config = self.config
        rng = np.random.default_rng((config.seed, step))
        patients = rng.choice(len(self.share), self.batch, p=self.share)
        chosen = [self.blocks.of_patient[patient] for patient in patients]
        pairs = [draw_pair(own[int(rng.integers(len(own)))], rng, config.view) for own in chosen]
        views = [pair[side] for side in range(2) for pair in pairs]
        colours = [self.blocks.colour[patient] for patient in patients] * 2
        both = restained(views, colours, self.blocks.colour, rng, config.view)
        return both.contiguous(memory_format=torch.channels_last)


class PatchLearner:
    """The scheme with its patch encoder, the moving average of the encoder, and the optimiser.

    The next batch is drawn while the network learns from this one.
    """

    def __init__(
        self,
        config: PatchTrainConfig,
        draw: Views,
        *,
        held_out: Tensor | None = None,
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        """``held_out``: views as ``draw`` gives, of patients that are only looked at."""
        self.config, self.draw, self.device = config, draw, compute.device
        self.held_out = held_out
        network = PatchCnn(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if start is not None:
            take_weights(network, load_patch_cnn(start).network, start)
        self.scheme = Scheme(
            config.scheme,
            network,
            config.network.out_dim,
            config.head_hidden,
            config.head_dim,
            config.temperature,
        )
        self.scheme.to(compute.device).train()
        self.average: PatchCnn = copy.deepcopy(network).requires_grad_(False).eval()
        self.modules: dict[str, nn.Module] = {"scheme": self.scheme, "average": self.average}
        self.optimiser = torch.optim.AdamW(
            [p for p in self.scheme.parameters() if p.requires_grad],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        # A thread of torch starts with as many of its own as there are cores.
        self._ahead = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))
        self._next: tuple[int, Future[Tensor]] | None = None

    def step(self, number: int, history: History) -> float:
        """One step over two views of each of ``batch`` pieces of tissue."""
        set_rate(self.optimiser, self._learning_rate(number))
        views = self._views(number)
        # Half the precision takes half the time; ranks do not suffer.
        with torch.autocast(self.device.type, torch.bfloat16):
            loss = self.scheme(views)
        value = descend(self.optimiser, loss)
        self.scheme.after_step()
        # Early on the average must not remember the random start.
        self._follow(min(self.config.average, (number + 1) / (number + 10)))
        if self.held_out is not None:
            watch(history, number, self._held_out_loss)
        return value

    @property
    def batch(self) -> int:
        """Examples of a step; setting it discards the batch that was drawn ahead."""
        return self.draw.batch

    @batch.setter
    def batch(self, batch: int) -> None:
        self.draw.batch, self._next = batch, None

    def _held_out_loss(self) -> float:
        with looking([self.scheme]), torch.autocast(self.device.type, torch.bfloat16):
            return float(self.scheme(self.held_out))

    def _views(self, number: int) -> Tensor:
        known = self._next
        now = known[1] if known and known[0] == number else self._drawn(number)
        self._next = (number + 1, self._drawn(number + 1))
        return now.result()

    def _drawn(self, number: int) -> Future[Tensor]:
        return self._ahead.submit(self.draw, peers().drawn(number))

    def _learning_rate(self, step: int) -> float:
        config = self.config
        warm = (step + 1) / config.warmup
        cool = (config.steps - step) / max(1, config.cooldown)
        return config.learning_rate * min(1.0, warm) * min(1.0, cool)

    def _follow(self, rate: float) -> None:
        slow, fast = self.average.state_dict(), self.scheme.encoder.state_dict()
        with torch.no_grad():
            for name, value in slow.items():
                if value.is_floating_point():
                    value.lerp_(fast[name], 1 - rate)
                else:
                    value.copy_(fast[name])


def _held_out_views(
    config: PatchTrainConfig, data: Path, run: TrainingRun[PatchTrainConfig]
) -> Tensor | None:
    """One batch of tissue of the patients that are not learned from; None without any."""
    if not config.atlas and not config.held_out:
        return None
    atlas = data / config.atlas if config.atlas else None
    for name, _, _ in config.held_out:
        if not (data / name).exists():
            raise BadInputError(f"held_out: {name!r} is not in the data folder")
    try:
        blocks = read_blocks(data, atlas, config.held_out, run.progress, use=WATCHED)
    except BadInputError:  # a table of one's own need not keep any patient back
        return None
    return TissueViews(config, blocks)(_HELD_OUT).to(run.compute.device)
