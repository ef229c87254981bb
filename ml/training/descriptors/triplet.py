"""``python -m ml train triplet``: the triplet descriptor, and its tuning to one sequence.

A step of the run is an epoch; every few epochs a new data set is drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.keypoints.descriptors.learned_weights import StoredDescriptor, save_descriptor
from ml.training.common.plots import write_loss_plot
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.descriptors.card import SHARES, DescriptorSummary, write_training
from ml.training.descriptors.triplet_config import TripletConfig
from ml.training.descriptors.triplet_learner import TripletLearner
from ml.training.descriptors.validate import validate
from ml.training.descriptors.views import KeypointStill, read_sequence, read_stills
from ml.types import Progress


class TripletSummary(DescriptorSummary):
    """Result of a training of ``triplet``, with the first and the last share of each kind.

    ``table``: Markdown written into a card, empty without a card.
    """

    shares: dict[str, list[float]]
    table: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train triplet``."""
    add_run_arguments(parser, has_data=False, has_card=True, has_start=True)
    parser.add_argument(
        "--sequence", type=Path, help="frames or a video to tune to, without labels"
    )
    parser.add_argument("--section", default="training", help="what the card calls these figures")


def run(args: argparse.Namespace, progress: Progress) -> TripletSummary:
    """Train by command line arguments; see ``train_triplet``.

    Raises:
        BadInputError: neither a data folder nor a sequence.
    """
    config = config_from_file(TripletConfig(), args.config)
    held_out: list[KeypointStill] = []
    if args.sequence is not None:
        stills = read_sequence(args.sequence, config.stills)
    elif args.data is not None:
        stills, held_out = read_stills(args.data, config.stills, progress=progress)
    else:
        raise BadInputError("--data: expected the folder that holds the folder of stills, got none")
    run = TrainingRun.of(args, config, progress)
    return train_triplet(run, stills, held_out, section=args.section)


def train_triplet(
    run: TrainingRun[TripletConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill] = (),
    *,
    section: str = "training",
) -> TripletSummary:
    """Train ``triplet``; draws ``shares.png``, the paper's figure 6, where matplotlib is installed.

    Args:
        run: resumed from its checkpoint, or started from ``run.start``, if there is one.
        held_out: stills for shares and validation only; may be empty.
        section: of the run's card.
    Source: adaptive-triplet-endoscopic-matching, sections 2.2, 3.2 and 3.3.1.
    """
    config = run.config
    with run.learning():
        learner = TripletLearner(
            config,
            stills,
            held_out,
            start=run.start,
            compute=run.compute,
        )
        run.train(learner, steps=config.epochs, checkpoint_every=config.checkpoint_every)
    stored = StoredDescriptor(config.name, config.version, config.ratio, learner.network, None)
    save_descriptor(run.weights, stored)
    shares = {name: run.history[name] for name in run.history if name.endswith(SHARES)}
    summary: TripletSummary = {
        **run.summary(last=1),
        "stills": len(stills),
        "held_out": len(held_out),
        "validation": validate(descriptor_from_file(run.weights), held_out) if held_out else {},
        "shares": {name: [line[0], line[-1]] for name, line in shares.items() if line},
        "table": "",
    }
    run.write_log(summary)
    if run.card is not None:
        summary["table"] = write_training(run.card, summary, run.history, held_out, section=section)
    lines = {name.replace("_", " "): line for name, line in shares.items()}
    write_loss_plot(run.out / "shares.png", lines, x="epoch", y="share of triplets")
    return summary
