"""``python -m ml train vit``: the adapted vision transformer, by novel-view synthesis.

Source: dinov2-adaptation-endoscopic-matching, sections III-B, III-C and III-F.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.keypoints.descriptors.vit_weights import save_network
from ml.reports.cards import update_card
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.common.sources import source_files
from ml.training.vit.config import VitTrainConfig, paper_config
from ml.training.vit.depth import DptDepth, folder_depth
from ml.training.vit.learner import VitLearner
from ml.training.vit.pairs import DepthOf, MaskedStill, make_still
from ml.types import Progress, no_progress


class VitSummary(RunSummary):
    """Result of a training of the adapted transformer.

    ``validation`` has a row each time the held-out pairs were scored; see ``score_pairs``.
    """

    stills: int
    held_out_stills: int
    steps: int
    validation: list[dict[str, float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train vit``."""
    add_run_arguments(parser, has_card=True, has_start=True)
    parser.add_argument(
        "--backbone",
        help=(
            "folder or hub name of a transformers ViT, kept frozen, with an adapter trained on it "
            "as in the paper"
        ),
    )
    parser.add_argument("--depth-model", help="folder or hub name of a transformers DPT")
    parser.add_argument("--depth-folder", type=Path, help="folder of <image stem>.npy depths")


def run(args: argparse.Namespace, progress: Progress) -> VitSummary:
    """Train by command line arguments; see ``train_vit``."""
    default = VitTrainConfig() if args.backbone is None else paper_config(args.backbone)
    config = config_from_file(default, args.config)
    if args.backbone is not None and args.config is not None:
        network = dataclasses.replace(config.network, backbone=args.backbone)
        config = dataclasses.replace(config, network=network, train_backbone=False)
    return train_vit(
        TrainingRun.of(args, config, progress),
        data=args.data,
        depth_of=depth_source(config, model=args.depth_model, folder=args.depth_folder),
    )


def train_vit(
    run: TrainingRun[VitTrainConfig], *, data: Path, depth_of: DepthOf | None = None
) -> VitSummary:
    """Train the descriptor.

    Args:
        run: resumed from its checkpoint, or started from ``run.start``, if there is one.
        data: folder the sources are relative to.
        depth_of: depth of a still; None draws a smooth surface for each pair.
    """
    config = run.config
    files = source_files(config.sources, data)
    stills, held_out = read_stills(config, files, depth_of=depth_of, progress=run.progress)
    with run.learning():
        learner = VitLearner(
            config,
            stills,
            held_out,
            start=run.start,
            compute=run.compute,
        )
        run.train(learner, steps=config.last_step, checkpoint_every=config.checkpoint_every)
    save_network(run.weights, learner.network.eval(), version=config.version)
    summary: VitSummary = {
        **run.summary(),
        "stills": len(stills),
        "held_out_stills": len(held_out),
        "steps": len(run.losses),
        "validation": run.history.get("validation", []),
    }
    run.write_log(summary)
    if run.card is not None:
        update_card(run.card, "training", card_text(summary, run.losses))
    return summary


def depth_source(
    config: VitTrainConfig, *, model: str | None, folder: Path | None
) -> DepthOf | None:
    """Source of depths: a DPT head, or files; None if a surface is to be drawn for each pair.

    Raises:
        BadInputError: both are given.
        WeightsError: no such model.
    """
    if model is not None and folder is not None:
        raise BadInputError("expected --depth-model or --depth-folder, got both")
    if model is not None:
        dpt = DptDepth(model, inverse=config.depth_inverse)
        return lambda stem, image: dpt(image)
    if folder is not None:
        return lambda stem, image: folder_depth(folder, stem, (image.shape[0], image.shape[1]))
    return None


def read_stills(
    config: VitTrainConfig,
    files: Sequence[Path],
    *,
    depth_of: DepthOf | None = None,
    progress: Progress = no_progress,
) -> tuple[list[MaskedStill], list[MaskedStill]]:
    """Read the stills to train on and those held out, by the prefix of their names.

    Raises:
        BadInputError: none is left to train on.
    """
    stills: list[MaskedStill] = []
    held_out: list[MaskedStill] = []
    for number, path in enumerate(files, 1):
        is_held = path.name.startswith(config.held_out) if config.held_out else False
        chosen = held_out if is_held else stills
        chosen.append(make_still(path, working_px=config.working_px, depth_of=depth_of))
        progress(number, len(files), "reading")
    if not stills:
        raise BadInputError("every still is held out, so none is left to train on")
    return stills, held_out


def card_text(summary: VitSummary, losses: Sequence[float]) -> str:
    """Markdown of what was trained, the losses and the validation."""
    config = summary["train_config"]
    warmup = min(config["warmup_steps"], len(losses))
    part = max(1, round(len(losses) / 8))
    first_loss, last_loss = (
        f"{np.mean(p):.3f}" if p else "none" for p in (losses[:part], losses[-part:])
    )
    text = (
        f"{summary['stills']} stills, {summary['held_out_stills']} held out"
        f" (operations {', '.join(config['held_out'])}); {summary['steps']} steps of"
        f" {config['batch']} pairs, {warmup} of them contrastive, then triplets; seed"
        f" {config['seed']}; configuration {summary['train_config_hash']}."
        f" Mean loss of the first {part} steps {first_loss}, of the last {last_loss}."
    )
    if not summary["validation"]:
        return text
    first, last = summary["validation"][0], summary["validation"][-1]
    return (
        f"{text}\n\nSynthetic pairs of the held-out stills ({config['validation_pairs']} pairs,"
        " mutual arg-max over patches, right within one patch along each axis): precision"
        f" {first['precision']:.3f} and recall {first['recall']:.3f} at step {first['step']:.0f},"
        f" {last['precision']:.3f} and {last['recall']:.3f} at step {last['step']:.0f}."
    )
