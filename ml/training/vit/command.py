"""Training of the adapted vision transformer by novel-view synthesis.

Run it by ``python -m ml train vit``. Every step draws from a generator of its own, seeded by
(seed, step), so an interrupted run ends with the same weights.

Source: dinov2-adaptation-endoscopic-matching, sections III-B, III-C and III-F.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ml.config import config_from_file, config_hash
from ml.errors import BadInputError
from ml.keypoints.descriptors.vit_weights import save_network
from ml.reports.cards import update_card
from ml.training.roi.encoder import one_thread, source_files
from ml.training.vit.card import card_text, plot_losses, write_log
from ml.training.vit.config import VitTrainConfig, paper_config
from ml.training.vit.depth import DptDepth, folder_depth
from ml.training.vit.pairs import DepthOf, Still, make_still
from ml.training.vit.run import VitRun
from ml.types import Progress, no_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train vit``."""
    parser.add_argument("--data", type=Path, required=True, help="folder the sources are in")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, log, plot")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument(
        "--backbone",
        help="folder or hub name of a transformers ViT, kept frozen, trained on as in the paper",
    )
    parser.add_argument("--depth-model", help="folder or hub name of a transformers DPT")
    parser.add_argument("--depth-folder", type=Path, help="folder of <image stem>.npy depths")
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")
    parser.add_argument("--card", type=Path, help="model card to write the figures of training to")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_vit``."""
    default = VitTrainConfig() if args.backbone is None else paper_config(args.backbone)
    config = config_from_file(default, args.config)
    if args.backbone is not None and args.config is not None:
        network = dataclasses.replace(config.network, backbone=args.backbone)
        config = dataclasses.replace(config, network=network, train_backbone=False)
    return train_vit(
        config,
        data=args.data,
        out=args.out,
        weights=args.weights,
        depth_of=depth_source(config, model=args.depth_model, folder=args.depth_folder),
        card=args.card,
        progress=progress,
    )


def train_vit(
    config: VitTrainConfig,
    *,
    data: Path,
    out: Path,
    weights: Path | None = None,
    depth_of: DepthOf | None = None,
    card: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train the descriptor, going on from a checkpoint in ``out`` if there is one.

    Writes ``log.json`` (losses and validation) and, where matplotlib is installed, ``loss.png``.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        data: folder the sources are relative to.
        weights: file of the descriptor, by default ``out/<name>.safetensors``.
        depth_of: depth of a still; None draws a smooth surface for each pair.
        card: a model card, whose figures of training are written anew.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: stills, losses, validation, hash, file.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    files = source_files(config.sources, data)
    stills, held_out = read_stills(config, files, depth_of=depth_of, progress=progress)
    with one_thread():
        run = VitRun(config, stills, held_out, out / "checkpoint.pt")
        run.resume()
        losses = run.train(progress)
        by_threshold = run.by_threshold()
    weights = weights or out / f"{config.name}.safetensors"
    save_network(weights, run.network, version=config.version)
    summary = {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config": dataclasses.asdict(config),
        "train_config_hash": config_hash(config),
        "stills": len(stills),
        "held_out_stills": len(held_out),
        "steps": len(losses),
        "loss_first": losses[0] if losses else None,
        "loss_last": float(np.mean(losses[-20:])) if losses else None,
        "validation": run.validation,
        "thresholds": by_threshold,
        "seconds": time.perf_counter() - started,
    }
    write_log(summary | {"losses": losses}, out / "log.json")
    plot_losses(losses, run.validation, out / "loss.png", warmup=config.warmup_steps)
    if card is not None:
        update_card(card, "training", card_text(summary, losses))
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
) -> tuple[list[Still], list[Still]]:
    """The stills to train on and those held out, by the beginning of their names.

    Raises:
        BadInputError: none is left to train on.
    """
    stills: list[Still] = []
    held_out: list[Still] = []
    for done, path in enumerate(files, 1):
        is_held = path.name.startswith(config.held_out) if config.held_out else False
        chosen = held_out if is_held else stills
        chosen.append(make_still(path, working_px=config.working_px, depth_of=depth_of))
        progress(done, len(files), "reading")
    if not stills:
        raise BadInputError("every still is held out: none is left to train on")
    return stills, held_out
