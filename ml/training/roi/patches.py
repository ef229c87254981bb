"""Self-supervised training of the patch encoder.

Run it by ``python -m ml train patches``. Every step draws from a generator of its own, seeded by
(seed, step), so an interrupted run ends with the same weights.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shapely.geometry import box

from ml.config import config_from_file, config_hash
from ml.errors import BadInputError
from ml.imaging.slides import open_slide
from ml.networks.patch_cnn import PatchCnn
from ml.roi.encoders.patch_cnn import save_patch_cnn
from ml.roi.features import PATCH_PX, tissue_share
from ml.roi.geometry import downsample_for
from ml.roi.patches import cut_patch, isotropic_mpp, patch_corners
from ml.roi.sampling import SamplingConfig, sample_patches
from ml.training.common.checkpoint import read_checkpoint, write_checkpoint
from ml.training.roi.encoder import one_thread, source_files
from ml.training.roi.patch_views import Source, draw_view, stain_sample, stained_views
from ml.training.roi.patches_config import PatchTrainConfig
from ml.training.roi.ssl import Scheme
from ml.types import Progress, no_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train patches``."""
    parser.add_argument("--data", type=Path, required=True, help="folder the sources are in")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_patches``."""
    default = PatchTrainConfig()
    config = config_from_file(default, args.config)
    return train_patches(
        config, data=args.data, out=args.out, weights=args.weights, progress=progress
    )


def train_patches(
    config: PatchTrainConfig,
    *,
    data: Path,
    out: Path,
    weights: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train a patch encoder, going on from a checkpoint in ``out`` if there is one.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        data: folder the sources are relative to.
        weights: file of the encoder, by default ``out/<name>.safetensors``.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: sources, patches, losses, hash, file.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    sources = _sources(config, source_files(config.sources, data), progress)
    with one_thread():
        run = PatchRun(config, sources, out / "checkpoint.pt")
        run.resume()
        losses = run.train(progress)
    weights = weights or out / f"{config.name}.safetensors"
    save_patch_cnn(weights, name=config.name, version=config.version, network=run.network)
    return {
        "name": config.name,
        "version": config.version,
        "weights": weights.name,
        "train_config": dataclasses.asdict(config),
        "train_config_hash": config_hash(config),
        "sources": len(sources),
        "patches": sum(len(source.centre_px) for source in sources),
        "loss_first": losses[0] if losses else None,
        "loss_last": float(np.mean(losses[-20:])) if losses else None,
        "seconds": time.perf_counter() - started,
    }


class PatchRun:
    """State of a run: scheme with its encoder, optimiser, losses so far."""

    def __init__(
        self, config: PatchTrainConfig, sources: Sequence[Source], checkpoint: Path
    ) -> None:
        self.config, self.sources, self.checkpoint = config, sources, checkpoint
        share = np.sqrt([len(source.centre_px) for source in sources])
        self.share = share / share.sum()
        torch.manual_seed(config.seed)
        self.network = PatchCnn(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.scheme = Scheme(
            config.scheme,
            self.network,
            config.network.out_dim,
            config.head_hidden,
            config.head_dim,
            config.temperature,
        )
        trained = [p for p in self.scheme.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            trained, lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.losses: list[float] = []

    def train(self, progress: Progress) -> list[float]:
        """Take the steps that are left; returns the losses of all."""
        config = self.config
        self.scheme.train()
        while len(self.losses) < config.steps:
            self.losses.append(self._step(len(self.losses)))
            done = len(self.losses)
            if done % config.checkpoint_every == 0 or done == config.steps:
                self.save()
            progress(done, config.steps, f"training, loss {self.losses[-1]:.3f}")
        self.scheme.eval()
        return self.losses

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "scheme": self.scheme.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "losses": self.losses,
        }
        write_checkpoint(self.checkpoint, self.config, state)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one.

        Raises:
            BadInputError: it belongs to another configuration.
        """
        state = read_checkpoint(self.checkpoint, self.config)
        if state is None:
            return
        self.scheme.load_state_dict(state["scheme"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.losses = list(state["losses"])

    def _step(self, step: int) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = self._learning_rate(step)
        loss = self.scheme(self._views(np.random.default_rng((self.config.seed, step))))
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.scheme.after_step()
        return float(loss.detach())

    def _learning_rate(self, step: int) -> float:
        config = self.config
        if step < config.warmup:
            return config.learning_rate * (step + 1) / config.warmup
        done = (step - config.warmup) / max(1, config.steps - config.warmup)
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))

    def _views(self, rng: np.random.Generator) -> torch.Tensor:
        config = self.config
        drawn = [
            self.sources[int(number)]
            for number in rng.choice(len(self.sources), config.batch, p=self.share)
        ]
        patches = [int(rng.integers(len(source.centre_px))) for source in drawn]
        views = [
            draw_view(source, patch, rng, config.view)
            for _ in range(2)
            for source, patch in zip(drawn, patches, strict=True)
        ]
        samples = [source.sample_od for source in drawn] * 2
        both = stained_views(views, samples, rng, config.view)
        return both.contiguous(memory_format=torch.channels_last)


def _sources(config: PatchTrainConfig, files: Sequence[Path], progress: Progress) -> list[Source]:
    sources = []
    for done, path in enumerate(files, 1):
        source = _source(path, config, np.random.default_rng((config.seed, 1 << 20, done)))
        if source is not None:
            sources.append(source)
        progress(done, len(files), "reading")
    if not sources:
        raise BadInputError("no source holds tissue to train on")
    return sources


def _source(path: Path, config: PatchTrainConfig, rng: np.random.Generator) -> Source | None:
    with open_slide(path) as slide:
        info = slide.info
        size = (info.width_px, info.height_px)
        mpp = isotropic_mpp(info.mpp_x, info.mpp_y)
        downsample = downsample_for(
            mpp=mpp, target_mpp=1.0, patch_px=PATCH_PX, width_px=size[0], height_px=size[1]
        )
        pixels = slide.read_scaled((0, 0), size, downsample)
    sampling = SamplingConfig(density=config.density, max_vertices=1 << 14, seed=config.seed)
    sample = sample_patches(
        box(0, 0, *size),
        downsample=downsample,
        width_l0=size[0],
        height_l0=size[1],
        config=sampling,
    )
    patches = [cut_patch(pixels, c, PATCH_PX) for c in patch_corners(sample.centre_px, PATCH_PX)]
    kept = [i for i, patch in enumerate(patches) if tissue_share(patch) >= config.min_tissue]
    if not kept:
        return None
    return Source(pixels, sample.centre_px[kept], stain_sample([patches[i] for i in kept], rng))
