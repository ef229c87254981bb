"""Training of ``cnn``: the seven-layer CNN of key point windows, by contrast across two views.

Run it by ``python -m ml train cnn``. Every step draws from a generator of its own, seeded by
(seed, step), so an interrupted run ends with the same weights.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ml.config import config_hash
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.keypoints.descriptors.learned_weights import StoredDescriptor, save_descriptor
from ml.training.descriptors.card import write_training
from ml.training.descriptors.contrast import ContrastConfig, ContrastRun, ViewPair
from ml.training.descriptors.run import (
    add_run_arguments,
    config_of,
    data_folder,
    write_log,
    write_loss_plot,
)
from ml.training.descriptors.validate import validate
from ml.training.descriptors.views import Still, read_stills
from ml.training.roi.encoder import one_thread
from ml.types import Progress, no_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train cnn``."""
    add_run_arguments(parser)
    parser.add_argument("--from", dest="start", type=Path, help="weights to start from")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_contrast``."""
    config = config_of(ContrastConfig, args.config)
    stills, held_out = read_stills(data_folder(args.data), config.stills, progress=progress)
    return train_contrast(
        config,
        stills,
        held_out,
        out=args.out,
        weights=args.weights,
        start=args.start,
        card=args.card,
        progress=progress,
    )


def train_contrast(
    config: ContrastConfig,
    stills: Sequence[Still],
    held_out: Sequence[Still] = (),
    *,
    out: Path,
    weights: Path | None = None,
    start: Path | None = None,
    bank: dict[int, ViewPair] | None = None,
    most: int = 12,
    card: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train ``cnn`` or ``graph``, going on from a checkpoint in ``out`` if there is one.

    Writes the weights, ``log.json`` and ``loss.png``.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        held_out: stills for validation only; may be empty.
        weights: file to write, by default ``out/<name>.safetensors``.
        start: weights whose CNN the run starts from.
        bank: pairs of an earlier run over the same stills, frozen CNN and seed; more are added.
        most: held-out stills to score at the end, evenly spaced.
        card: model card whose figures of training are written anew.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: losses, validation on the held-out operations, hash, file.
    Source: graph-ssl-endoscopic-matching, sections 3.3, 4.1 and 4.2.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with one_thread():
        training = ContrastRun(config, stills, out / "checkpoint.pt", start, bank)
        losses = training.train(progress)
    weights = weights or out / f"{config.name}.safetensors"
    stored = StoredDescriptor(
        config.name, config.version, config.ratio, training.network, training.graph
    )
    save_descriptor(weights, stored)
    scores = validate(descriptor_from_file(weights), held_out, most=most) if held_out else {}
    summary = {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config_hash": config_hash(config),
        "stills": len(stills),
        "held_out": len(held_out),
        "keypoints": sum(len(still.xy) for still in stills),
        "loss_first": losses[0] if losses else None,
        "loss_last": float(np.mean(losses[-20:])) if losses else None,
        "validation": scores,
        "seconds": time.perf_counter() - started,
    }
    write_log(out, config, {"loss": losses}, **summary)
    if card is not None:
        write_training(card, summary, {"loss": losses}, held_out)
    write_loss_plot(out / "loss.png", {"loss": losses}, x="step")
    return {**summary, "train_config": dataclasses.asdict(config)}
