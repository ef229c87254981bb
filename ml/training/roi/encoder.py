"""Self-supervised training of the ROI encoder: SimCLR over graphs of random regions.

Run it by ``python -m ml train roi``. The same configuration gives the same weights, interrupted or
not: every step draws from a generator of its own, seeded by (seed, step).
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ml.config import config_from_file, config_hash
from ml.errors import BadInputError
from ml.roi.encoders.patch_cnn import NAME as PATCH_CNN
from ml.roi.encoders.patch_cnn import load_patch_cnn
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.encoders.textons import NAME as TEXTONS
from ml.roi.weights import SHIPPED_PATCH_CNN, WEIGHTS_FOLDER, save_encoder
from ml.training.roi.encoder_config import ENDOSCOPY, IMAGE_SUFFIXES, PoolKey, RoiTrainConfig
from ml.training.roi.encoder_run import RoiRun
from ml.training.roi.pool import PatchPool, load_or_build_pool
from ml.training.roi.textons import load_or_fit_textons
from ml.types import Progress, no_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train roi``."""
    parser.add_argument("--data", type=Path, required=True, help="folder the sources are in")
    parser.add_argument("--out", type=Path, required=True, help="folder for pool and checkpoints")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument("--endoscopy", action="store_true", help="of frames and mosaics")
    parser.add_argument(
        "--patch-weights", type=Path, help="our own patch encoder (the shipped one)"
    )
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_roi``."""
    default = ENDOSCOPY if args.endoscopy else RoiTrainConfig()
    config = config_from_file(default, args.config)
    return train_roi(
        config,
        data=args.data,
        out=args.out,
        weights=args.weights,
        patch_weights=args.patch_weights,
        progress=progress,
    )


def train_roi(
    config: RoiTrainConfig,
    *,
    data: Path,
    out: Path,
    weights: Path | None = None,
    patch_weights: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train an encoder, going on from a checkpoint in ``out`` if there is one.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        data: folder the sources are relative to.
        out: folder for patch features and the checkpoint.
        patch_weights: file of our own patch encoder, by default the shipped one.
        weights: file of the encoder, by default ``out/<name>.safetensors``.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: sources, patches, losses, hash, file.
    Source: the retrieval paper, section III-B.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    files = source_files(config.sources, data)
    with one_thread():
        patches, digest = _patch_encoder(config, patch_weights, data, out, progress)
    pools = _pools(config, patches, digest, files, out, progress)
    with one_thread():
        run = RoiRun(config, pools, out / "checkpoint.pt", patches)
        run.resume()
        losses = run.train(progress)
        run.calibrate()
    weights = weights or out / f"{config.name}.safetensors"
    save_encoder(
        weights,
        name=config.name,
        version=config.version,
        config=config.encoder,
        network=run.network,
        patches=patches,
    )
    return {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config": dataclasses.asdict(config),
        "train_config_hash": config_hash(config),
        "sources": [file.name for file in files],
        "patches": sum(len(pool) for pool in pools),
        "steps": config.steps,
        "loss_first": losses[0] if losses else None,
        "loss_last": float(np.mean(losses[-20:])) if losses else None,
        "seconds": time.perf_counter() - started,
    }


def source_files(sources: Sequence[str], data: Path) -> list[Path]:
    """The files to train on, folders expanded in name order.

    Raises:
        BadInputError: a source is not there, or there is none.
    """
    files: list[Path] = []
    for source in sources:
        path = data / source
        if path.is_dir():
            files += sorted(p for p in path.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)
        elif path.is_file():
            files.append(path)
        else:
            raise BadInputError(f"source {source!r} is not in the data folder")
    if not files:
        raise BadInputError("no source to train on")
    return files


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: more of them add in an order that depends on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _patch_encoder(
    config: RoiTrainConfig, weights: Path | None, data: Path, out: Path, progress: Progress
) -> tuple[PatchEncoder, str]:
    """The patch encoder, and a digest of its weights where they are our own."""
    names = config.encoder.features.split("+")
    cnn, textons, digest = None, None, ""
    if PATCH_CNN in names:
        weights = weights or WEIGHTS_FOLDER / SHIPPED_PATCH_CNN
        cnn = load_patch_cnn(weights)
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:16]
    if TEXTONS in names:
        textons, more = load_or_fit_textons(
            [source_files([source], data) for source in config.texton_sources],
            out,
            config=config.encoder,
            fit=config.texton_fit,
            seed=config.seed,
            progress=progress,
        )
        digest += more
    encoder = make_patch_encoder(
        config.encoder.features,
        cnn=cnn,
        textons=textons,
        weights=config.part_weights if len(names) > 1 else (),
    )
    if encoder.dim != config.encoder.network.in_dim:
        raise BadInputError(
            f"encoder.network.in_dim: expected {encoder.dim}, the length of"
            f" {encoder.name!r}, got {config.encoder.network.in_dim}"
        )
    return encoder, digest


def _pools(  # noqa: PLR0917
    config: RoiTrainConfig,
    patches: PatchEncoder,
    digest: str,
    files: list[Path],
    out: Path,
    progress: Progress,
) -> list[PatchPool]:
    encoder = config.encoder
    key = config_hash(
        PoolKey(
            encoder.features + digest,
            encoder.stain,
            encoder.keep_strength,
            encoder.sampling,
            density=config.pool_density,
            window=config.window,
            looks=config.looks,
            stain_strength=config.stain_strength,
            zoom_strength=config.zoom_strength,
            seed=config.seed,
        )
    )
    return [
        load_or_build_pool(
            file,
            out / f"pool-{key}-{file.stem}.npz",
            config=config.encoder,
            encoder=patches,
            density=config.pool_density,
            window=config.window,
            looks=config.looks,
            strength=(config.stain_strength, config.zoom_strength),
            seed=config.seed + number,
            progress=progress,
        )
        for number, file in enumerate(files)
    ]
