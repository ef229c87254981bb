"""``python -m ml train patches``: the patch encoder, by contrast of two views of tissue."""

from __future__ import annotations

import argparse
import copy
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import torch
from torch import Tensor, nn

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.networks.device import REFERENCE, Compute
from ml.networks.patch_cnn import PatchCnn
from ml.roi.encoders.patch_cnn import load_patch_cnn, save_patch_cnn
from ml.training.common.held_out import evaluating, record_held_out
from ml.training.common.peers import peers
from ml.training.common.run import History, RunSummary, TrainingRun, add_run_arguments
from ml.training.common.start import take_weights
from ml.training.common.steps import descend, set_rate
from ml.training.roi.patches.batches import Batch, Batches, TissueBatches
from ml.training.roi.patches.blocks import HELD_OUT_USE, read_blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.roi.patches.ssl import SimClr
from ml.types import Progress

_HELD_OUT = 1 << 30
"""Step that seeds the held-out views: no run is as long."""


class PatchSummary(RunSummary):
    """Result of a training of the patch encoder: patients and blocks of tissue it saw."""

    patients: int
    blocks: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train patches``."""
    add_run_arguments(parser, has_start=True)
    parser.add_argument(
        "--draw-workers", type=int, default=0, help="processes that cut out views ahead (0)"
    )


def run(args: argparse.Namespace, progress: Progress) -> PatchSummary:
    """Train by command line arguments; see ``train_patches``."""
    config = config_from_file(PatchTrainConfig(), args.config)
    run = TrainingRun.of(args, config, progress)
    return train_patches(run, data=args.data, draw_workers=args.draw_workers)


def train_patches(
    run: TrainingRun[PatchTrainConfig], *, data: Path, draw_workers: int = 0
) -> PatchSummary:
    """Train a patch encoder.

    Args:
        run: resumed from its checkpoint, or started from ``run.start``, if there is one.
        data: folder the sources are relative to.
        draw_workers: number of processes that prefetch examples; 0 for a thread of this process.
            It does not change the examples.
    """
    config = run.config
    blocks = read_blocks(
        data,
        data / config.atlas if config.atlas else None,
        config.slides,
        run.progress,
        max_mpp=config.view.max_block_mpp,
    )
    with (
        run.learning(),
        closing(
            TissueBatches(config, blocks, workers=draw_workers, device=run.compute.device)
        ) as batches,
        closing(
            PatchLearner(
                config,
                batches,
                held_out=_held_out_views(config, data, run),
                start=run.start,
                compute=run.compute,
            )
        ) as learner,
    ):
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


class PatchLearner:
    """Learner of the patch encoder and of the moving average of its weights.

    The next batch is drawn while the network learns from the current one.
    """

    def __init__(
        self,
        config: PatchTrainConfig,
        draw: Batches,
        *,
        held_out: Tensor | None = None,
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        """Build network and optimiser; ``held_out``: views of held-out patients."""
        self.config, self.draw, self.device = config, draw, compute.device
        self.held_out = held_out
        network = PatchCnn(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if start is not None:
            take_weights(network, load_patch_cnn(start).network, start)
        self.scheme = SimClr(
            network,
            dim=config.network.out_dim,
            hidden_dim=config.head_hidden,
            out_dim=config.head_dim,
            temperature=config.temperature,
            label_weight=config.organ_weight,
        )
        self.scheme.to(compute.device).train()
        self.average: PatchCnn = copy.deepcopy(network).requires_grad_(False).eval()
        self.modules: dict[str, nn.Module] = {"scheme": self.scheme, "average": self.average}
        self.optimiser = torch.optim.AdamW(
            [p for p in self.scheme.parameters() if p.requires_grad],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        # By default a new thread of torch starts one thread per core.
        self._executor = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))
        self._next: tuple[int, Future[Batch]] | None = None

    def step(self, number: int, history: History) -> float:
        """Take a step over two views of each of ``batch`` examples."""
        set_rate(self.optimiser, self._learning_rate(number))
        batch = self._batch(number)
        # bfloat16 takes half the time.
        with torch.autocast(self.device.type, torch.bfloat16):
            loss = self.scheme(batch.views, batch.organs, batch.patients)
        value = descend(self.optimiser, loss)
        # The average must not remember the random initial weights.
        self._follow(min(self.config.average, (number + 1) / (number + 10)))
        if self.held_out is not None:
            record_held_out(history, number, self._held_out_loss)
        return value

    def close(self) -> None:
        """End the thread that draws the next batch."""
        self._executor.shutdown(cancel_futures=True)

    @property
    def batch(self) -> int:
        """Number of examples of a step; setting it discards the prefetched batch."""
        return self.draw.batch

    @batch.setter
    def batch(self, batch: int) -> None:
        self.draw.batch, self._next = batch, None

    def _held_out_loss(self) -> float:
        with evaluating([self.scheme]), torch.autocast(self.device.type, torch.bfloat16):
            return float(self.scheme(self.held_out))

    def _batch(self, number: int) -> Batch:
        prefetched = self._next
        now = prefetched[1] if prefetched and prefetched[0] == number else self._draw_batch(number)
        self._next = (number + 1, self._draw_batch(number + 1))
        return now.result()

    def _draw_batch(self, number: int) -> Future[Batch]:
        return self._executor.submit(self.draw, peers().draw_number(number))

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
    """Views of held-out patients; None if there are none."""
    if not config.atlas and not config.held_out:
        return None
    atlas = data / config.atlas if config.atlas else None
    for name, _, _ in config.held_out:
        if not (data / name).exists():
            raise BadInputError(f"held_out: {name!r} is not in the data folder")
    try:
        blocks = read_blocks(
            data,
            atlas,
            config.held_out,
            run.progress,
            use=HELD_OUT_USE,
            max_mpp=config.view.max_block_mpp,
        )
    except BadInputError:  # a lab's table need not hold out any patient
        return None
    return TissueBatches(config, blocks, device=run.compute.device)(_HELD_OUT).views
