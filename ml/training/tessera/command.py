"""``python -m ml train default``: the default key point descriptor, without labels.

Each round draws a new pool of pairs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.keypoints.descriptors.tessera import save_tessera
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.common.stills import Area
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.tessera.learner import TesseraLearner
from ml.training.tessera.pool import load_stills
from ml.types import Progress

MAX_HELD_OUT = 6
"""Largest number of held-out stills whose loss is recorded after each round."""


class TesseraSummary(RunSummary):
    """Result of a training of the default descriptor: stills read, the loss of each round."""

    stills: int
    loss_by_round: list[float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train default``."""
    add_run_arguments(parser, has_start=True)


def run(args: argparse.Namespace, progress: Progress) -> TesseraSummary:
    """Train by command line arguments; see ``train_tessera``."""
    config = config_from_file(TesseraTrainConfig(), args.config)
    return train_tessera(TrainingRun.of(args, config, progress), data=args.data)


def train_tessera(run: TrainingRun[TesseraTrainConfig], *, data: Path) -> TesseraSummary:
    """Train the descriptor.

    Args:
        run: resumed from its last round, or started from ``run.start``, if there is one.
        data: folder the source is relative to.
    Raises:
        BadInputError: no still to train on, or too few key points on them.
    """
    config = run.config
    stills = load_stills(training_files(config, data), _boxes(config.blank))
    held_out_paths = held_out_files(config, data)
    held_out = load_stills(held_out_paths, _boxes(config.blank)) if held_out_paths else []
    with run.learning():
        learner = TesseraLearner(
            config,
            stills,
            held_out,
            start=run.start,
            compute=run.compute,
        )
        run.train(learner, steps=config.rounds, checkpoint_every=1)
    network = learner.network.eval()
    save_tessera(run.weights, name=config.name, version=config.version, network=network)
    summary: TesseraSummary = {
        **run.summary(last=1),
        "stills": len(stills),
        "loss_by_round": [round(loss, 4) for loss in run.losses],
    }
    run.write_log(summary)
    return summary


def training_files(config: TesseraTrainConfig, data: Path) -> list[Path]:
    """Stills to train on, in name order, without those of held-out operations."""
    return [
        path
        for path in sorted((data / config.source).glob("*.[jp][pn]g"))
        if not path.name.startswith(config.held_out)
    ]


def held_out_files(config: TesseraTrainConfig, data: Path) -> list[Path]:
    """At most ``MAX_HELD_OUT`` stills of the operations held out, about as many of each."""
    chosen = []
    for prefix in config.held_out:
        files = sorted((data / config.source).glob("*.[jp][pn]g"))
        source_paths = [path for path in files if path.name.startswith(prefix)]
        chosen += source_paths[
            :: max(1, -(-len(source_paths) * len(config.held_out) // MAX_HELD_OUT))
        ]
    return chosen


def _boxes(values: tuple[float, ...]) -> list[Area]:
    if len(values) % 4:
        raise BadInputError(f"blank: expected boxes of 4 numbers, got {len(values)} numbers")
    return [
        (values[i], values[i + 1], values[i + 2], values[i + 3]) for i in range(0, len(values), 4)
    ]
