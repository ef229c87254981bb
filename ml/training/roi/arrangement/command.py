"""``python -m ml train arrangement``: a graph part over the patches of the slide encoder."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.networks.vertex_mean import VertexMean
from ml.roi.load import load_graph_encoder
from ml.roi.weights import save_encoder
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.roi.arrangement.config import ArrangementConfig
from ml.training.roi.arrangement.learner import ArrangementLearner
from ml.training.roi.arrangement.regions import training_regions
from ml.types import Progress


class ArrangementSummary(RunSummary):
    """Result of a training: regions and patients it learned from, and the learned weight."""

    regions: int
    patients: int
    context_weight: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train arrangement``."""
    add_run_arguments(parser)
    parser.add_argument("--architecture", help="gcn, graphconv or diffpool (gcn)")
    parser.add_argument("--seed", type=int, help="of all random draws but those of the regions")
    parser.add_argument("--cache", type=Path, help="folder of patch features (OUT)")
    parser.add_argument("--encoder", default="default", help="its patch features are used")


def run(args: argparse.Namespace, progress: Progress) -> ArrangementSummary:
    """Train by command line arguments; see ``train_arrangement``."""
    config = config_from_file(ArrangementConfig(), args.config)
    if args.architecture is not None:
        config = dataclasses.replace(config, architecture=args.architecture)
    if args.seed is not None:
        config = dataclasses.replace(config, seed=args.seed)
    training = TrainingRun.of(args, config, progress)
    return train_arrangement(training, data=args.data, encoder=args.encoder, cache=args.cache)


def train_arrangement(
    run: TrainingRun[ArrangementConfig],
    *,
    data: Path,
    encoder: str = "default",
    cache: Path | None = None,
) -> ArrangementSummary:
    """Train a graph part and write an encoder with it.

    Args:
        data: Folder that the paths of the configuration start from.
        encoder: Encoder without a graph part whose patches and metric are used.
        cache: Folder of patch features; None for the folder of the run.
    Raises:
        BadInputError: The encoder has a graph part, or data are missing.
    """
    base = load_graph_encoder(encoder)
    if not isinstance(base.network, VertexMean):
        raise BadInputError(f"{encoder}: expected an encoder without a graph part")
    cache = cache or run.out
    cache.mkdir(parents=True, exist_ok=True)
    regions = training_regions(run.config, base, data, cache=cache, progress=run.progress)
    regions = regions.part(run.config, validation=False)
    with run.learning():
        learner = ArrangementLearner(
            run.config, base.network, regions.graphs, edge_px=base.config.edge_px
        )
        run.train(learner, steps=run.config.steps, checkpoint_every=run.config.checkpoint_every)
        network = learner.finish()
    save_encoder(
        run.weights,
        name=run.config.name,
        version=run.config.version,
        config=dataclasses.replace(base.config, network=network.config),
        network=network,
        patches=base.patches,
    )
    summary: ArrangementSummary = {
        **run.summary(),
        "regions": len(regions.graphs),
        "patients": len(set(regions.patients.tolist())),
        "context_weight": network.config.context_weight,
    }
    run.write_log(summary)
    return summary
