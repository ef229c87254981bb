"""Training of ``cnn``: the seven-layer CNN of key point windows, by contrast across two views.

Run it by ``python -m ml train cnn``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ml.config import config_from_file
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.keypoints.descriptors.learned_weights import StoredDescriptor, save_descriptor
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.descriptors.card import DescriptorSummary, write_training
from ml.training.descriptors.contrast import ContrastLearner, ViewPair
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.validate import validate, with_shuffled_positions
from ml.training.descriptors.views import KeypointStill, read_stills
from ml.types import Progress


class ContrastSummary(DescriptorSummary):
    """What a training of ``cnn`` or ``graph`` returns: key points of the stills as well.

    Of ``graph`` with stills held out also ``entropy_share`` of its attention there, see
    ``KeypointGnn``, and the validation with its ``positions_shuffled``; else None and empty.
    """

    keypoints: int
    entropy_share: float | None
    positions_shuffled: dict[str, dict[str, float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train cnn``."""
    add_run_arguments(parser, has_card=True, has_start=True)


def run(args: argparse.Namespace, progress: Progress) -> ContrastSummary:
    """Train by command line arguments; see ``train_contrast``."""
    config = config_from_file(ContrastConfig(), args.config)
    stills, held_out = read_stills(args.data, config.stills, progress=progress)
    return train_contrast(TrainingRun.of(args, config, progress), stills, held_out)


def train_contrast(
    run: TrainingRun[ContrastConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill] = (),
    *,
    bank: dict[int, ViewPair] | None = None,
    most: int = 12,
) -> ContrastSummary:
    """Train ``cnn`` or ``graph``.

    Args:
        run: continues from its checkpoint, if there is one; its CNN starts from ``run.start``.
        held_out: stills for validation only; may be empty.
        bank: pairs of an earlier run over the same stills, frozen CNN and seed; more are added.
        most: held-out stills to score at the end, evenly spaced.
    Source: graph-ssl-endoscopic-matching, sections 3.3, 4.1 and 4.2.
    """
    config = run.config
    with run.learning():
        learner = ContrastLearner(
            config,
            stills,
            held_out=held_out,
            start=run.start,
            bank=bank,
            compute=run.compute,
        )
        run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
    network = learner.network.eval()
    save_descriptor(
        run.weights,
        StoredDescriptor(config.name, config.version, config.ratio, network, learner.graph),
    )
    trained = descriptor_from_file(run.weights)
    shuffled = with_shuffled_positions(trained, seed=config.seed)
    summary: ContrastSummary = {
        **run.summary(),
        "stills": len(stills),
        "held_out": len(held_out),
        "keypoints": sum(len(still.xy) for still in stills),
        "validation": validate(trained, held_out, most=most) if held_out else {},
        "entropy_share": learner.entropy_share(),
        "positions_shuffled": validate(shuffled, held_out, most=most)
        if held_out and shuffled is not None
        else {},
    }
    run.write_log(summary)
    if run.card is not None:
        graph = (summary["entropy_share"], summary["positions_shuffled"])
        write_training(run.card, summary, run.history, held_out, of_graph=graph)
    return summary
