"""``python -m ml train cnn``: the CNN of key point windows, by contrast across two views."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ml.config import config_from_file
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.keypoints.descriptors.learned_weights import StoredDescriptor, save_descriptor
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.descriptors.card import DescriptorSummary, write_training
from ml.training.descriptors.contrast import ContrastLearner
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.validate import validate
from ml.training.descriptors.views import KeypointStill, read_stills
from ml.types import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train cnn``."""
    add_run_arguments(parser, has_card=True, has_start=True)


def run(args: argparse.Namespace, progress: Progress) -> DescriptorSummary:
    """Train by command line arguments; see ``train_contrast``."""
    config = config_from_file(ContrastConfig(), args.config)
    stills, held_out = read_stills(args.data, config.stills, progress=progress)
    return train_contrast(TrainingRun.of(args, config, progress), stills, held_out)


def train_contrast(
    run: TrainingRun[ContrastConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill] = (),
) -> DescriptorSummary:
    """Train ``cnn`` or ``graph``.

    Args:
        run: Resumed from its checkpoint, if there is one; its CNN starts from ``run.start``.
        held_out: Stills for validation only; may be empty.
    Source: graph-ssl-endoscopic-matching, sections 3.3, 4.1 and 4.2.
    """
    config = run.config
    with run.learning():
        learner = ContrastLearner(
            config, stills, held_out=held_out, start=run.start, compute=run.compute
        )
        run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
    network = learner.network.eval()
    save_descriptor(
        run.weights,
        StoredDescriptor(config.name, config.version, config.ratio, network, learner.graph),
    )
    trained = descriptor_from_file(run.weights)
    summary: DescriptorSummary = {
        **run.summary(),
        "stills": len(stills),
        "held_out": len(held_out),
        "validation": validate(trained, held_out) if held_out else {},
    }
    run.write_log(summary)
    if run.card is not None:
        write_training(run.card, summary, run.history, held_out)
    return summary
