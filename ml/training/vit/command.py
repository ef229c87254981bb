"""Training of the adapted vision transformer by novel-view synthesis: ``python -m ml train vit``.

Source: dinov2-adaptation-endoscopic-matching, sections III-B, III-C and III-F.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.keypoints.descriptors.vit_weights import save_network
from ml.reports.cards import update_card
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.common.sources import source_files
from ml.training.vit.card import card_text, plot_losses, rules_text
from ml.training.vit.config import VitTrainConfig, paper_config
from ml.training.vit.depth import DptDepth, folder_depth
from ml.training.vit.learner import VitLearner
from ml.training.vit.pairs import DepthOf, MaskedStill, make_still
from ml.training.vit.poses import pose_motions
from ml.types import Progress, no_progress


class VitSummary(RunSummary):
    """What a training of the adapted transformer returns.

    ``validation`` has a row each time the held-out pairs were scored, ``rules`` their scores
    at the end by the rule of a match; see ``score_rules``.
    """

    stills: int
    held_out_stills: int
    steps: int
    validation: list[dict[str, float]]
    rules: dict[str, dict[str, float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train vit``."""
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
    parser.add_argument(
        "--rules-card", type=Path, help="model card whose section 'rules' is replaced"
    )


def run(args: argparse.Namespace, progress: Progress) -> VitSummary:
    """Train by command line arguments; see ``train_vit``."""
    default = VitTrainConfig() if args.backbone is None else paper_config(args.backbone)
    config = config_from_file(default, args.config)
    if args.backbone is not None and args.config is not None:
        network = dataclasses.replace(config.network, backbone=args.backbone)
        config = dataclasses.replace(config, network=network, train_backbone=False)
    summary = train_vit(
        TrainingRun.of(args, config, progress),
        data=args.data,
        depth_of=depth_source(config, model=args.depth_model, folder=args.depth_folder),
    )
    if args.rules_card is not None:
        update_card(args.rules_card, "rules", rules_text(summary))
    return summary


def train_vit(
    run: TrainingRun[VitTrainConfig], *, data: Path, depth_of: DepthOf | None = None
) -> VitSummary:
    """Train the descriptor; draws ``loss.png`` where matplotlib is installed.

    Args:
        run: continues from its checkpoint, if there is one; otherwise from ``run.start``, if given.
        data: folder the sources are relative to.
        depth_of: depth of a still; None draws a smooth surface for each pair.
    """
    config = run.config
    files = source_files(config.sources, data)
    stills, held_out = read_stills(config, files, depth_of=depth_of, progress=run.progress)
    poses = pose_motions(data / config.poses) if config.poses else None
    with run.learning():
        learner = VitLearner(
            config,
            stills,
            held_out,
            start=run.start,
            compute=run.compute,
            poses=poses,
        )
        run.train(learner, steps=config.last_step, checkpoint_every=config.checkpoint_every)
        learner.network.eval()
        by_rule = learner.by_rule()
    save_network(run.weights, learner.network, version=config.version)
    summary: VitSummary = {
        **run.summary(),
        "stills": len(stills),
        "held_out_stills": len(held_out),
        "steps": len(run.losses),
        "validation": run.history.get("validation", []),
        "rules": by_rule,
    }
    run.write_log(summary)
    plot_losses(run.losses, summary["validation"], run.out / "loss.png", warmup=config.warmup_steps)
    if run.card is not None:
        update_card(run.card, "training", card_text(summary, run.losses))
    return summary


def depth_source(
    config: VitTrainConfig, *, model: str | None, folder: Path | None
) -> DepthOf | None:
    """Depth by a DPT head, from files, or None: a surface is drawn for each pair.

    Raises:
        BadInputError: both are given. WeightsError: no such model.
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
    """The stills to train on and those held out, by the beginning of their names.

    Raises:
        BadInputError: none is left to train on.
    """
    stills: list[MaskedStill] = []
    held_out: list[MaskedStill] = []
    for done, path in enumerate(files, 1):
        is_held = path.name.startswith(config.held_out) if config.held_out else False
        chosen = held_out if is_held else stills
        chosen.append(make_still(path, working_px=config.working_px, depth_of=depth_of))
        progress(done, len(files), "reading")
    if not stills:
        raise BadInputError("every still is held out, so none is left to train on")
    return stills, held_out
