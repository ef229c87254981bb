"""``python -m ml train graph``: the attentional graph network over the CNN's features."""

from __future__ import annotations

import argparse
import dataclasses

from ml.config import config_from_file
from ml.networks.keypoint_gnn import KeypointGnnConfig
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.descriptors.card import DescriptorSummary
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.views import read_stills
from ml.types import Progress

JOINT_STEPS = 1000
"""Steps of ``--joint``: each runs the CNN over two whole images, forwards and back."""


def graph_config() -> ContrastConfig:
    """Configuration of the shipped ``graph``: over the frozen CNN of ``cnn``, on a bank of pairs.

    Half of the neighbours of a mini-batch are drawn from anywhere in the image: with only the
    nearest the graph network learnt nothing of use (see the card).
    """
    return ContrastConfig(
        name="graph",
        version="1.1",
        has_graph=True,
        train_cnn=False,
        far=0.5,
        bank=150,
        steps=500,
    )


def joint_config() -> ContrastConfig:
    """Configuration of ``--joint``: CNN and graph network trained at once, as in the paper.

    A key point attends to its nearest 32, by cosines with a learned temperature.
    """
    graph = KeypointGnnConfig(attention="cosine", nearest=32)
    return dataclasses.replace(
        graph_config(), version="2.0", graph=graph, train_cnn=True, bank=0, steps=JOINT_STEPS
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train graph``."""
    add_run_arguments(parser, has_card=True, has_start=True)
    parser.add_argument(
        "--joint", action="store_true", help="train the CNN too, by attention to the nearest"
    )


def run(args: argparse.Namespace, progress: Progress) -> DescriptorSummary:
    """Train by command line arguments; see ``train_contrast``."""
    default = joint_config() if args.joint else graph_config()
    config = dataclasses.replace(config_from_file(default, args.config), has_graph=True)
    stills, held_out = read_stills(args.data, config.stills, progress=progress)
    return train_contrast(TrainingRun.of(args, config, progress), stills, held_out)
