"""Self-supervised training of the patch encoder.

Run it by ``python -m ml train patches``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from shapely.geometry import box

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.imaging.slides import open_slide
from ml.networks.patch_cnn import PatchCnn
from ml.roi.encoders.patch_cnn import save_patch_cnn
from ml.roi.features import PATCH_PX, tissue_share
from ml.roi.geometry import downsample_for
from ml.roi.patches import cut_patch, isotropic_mpp, patch_corners
from ml.roi.sampling import SamplingConfig, sample_patches
from ml.training.common.run import History, RunSummary, TrainingRun, add_run_arguments
from ml.training.common.sources import source_files
from ml.training.common.steps import descend, half_cosine, set_rate
from ml.training.roi.patch_views import PatchImage, draw_view, stain_sample, stained_views
from ml.training.roi.patches_config import PatchTrainConfig
from ml.training.roi.ssl import Scheme
from ml.types import Progress


class PatchSummary(RunSummary):
    """What a training of the patch encoder returns: slides and stills read, patches on them."""

    sources: int
    patches: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train patches``."""
    add_run_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> PatchSummary:
    """Train by command line arguments; see ``train_patches``."""
    config = config_from_file(PatchTrainConfig(), args.config)
    return train_patches(TrainingRun.of(args, config, progress), data=args.data)


def train_patches(run: TrainingRun[PatchTrainConfig], *, data: Path) -> PatchSummary:
    """Train a patch encoder.

    Args:
        run: goes on from its checkpoint, if there is one.
        data: folder the sources are relative to.
    """
    config = run.config
    sources = _sources(config, source_files(config.sources, data), run.progress)
    with run.learning():
        learner = PatchLearner(config, sources)
        run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
    network = learner.network.eval()
    save_patch_cnn(run.weights, name=config.name, version=config.version, network=network)
    summary: PatchSummary = {
        **run.summary(),
        "sources": len(sources),
        "patches": sum(len(source.centre_px) for source in sources),
    }
    run.write_log(summary)
    return summary


class PatchLearner:
    """The scheme with its patch encoder, and the optimiser."""

    def __init__(self, config: PatchTrainConfig, sources: Sequence[PatchImage]) -> None:
        self.config, self.sources = config, sources
        share = np.sqrt([len(source.centre_px) for source in sources])
        self.share = share / share.sum()
        self.network = PatchCnn(config.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.scheme = Scheme(
            config.scheme,
            self.network,
            config.network.out_dim,
            config.head_hidden,
            config.head_dim,
            config.temperature,
        ).train()
        self.modules = {"scheme": self.scheme}
        trained = [p for p in self.scheme.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            trained, lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def step(self, number: int, history: History) -> float:
        """One step over two views of each of ``batch`` patches."""
        set_rate(self.optimiser, self._learning_rate(number))
        views = self._views(np.random.default_rng((self.config.seed, number)))
        loss = descend(self.optimiser, self.scheme(views))
        self.scheme.after_step()
        return loss

    def _learning_rate(self, step: int) -> float:
        config = self.config
        if step < config.warmup:
            return config.learning_rate * (step + 1) / config.warmup
        done = (step - config.warmup) / max(1, config.steps - config.warmup)
        return config.learning_rate * half_cosine(done)

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


def _sources(
    config: PatchTrainConfig, files: Sequence[Path], progress: Progress
) -> list[PatchImage]:
    sources = []
    for done, path in enumerate(files, 1):
        source = _source(path, config, np.random.default_rng((config.seed, 1 << 20, done)))
        if source is not None:
            sources.append(source)
        progress(done, len(files), "reading")
    if not sources:
        raise BadInputError("no source holds tissue to train on")
    return sources


def _source(path: Path, config: PatchTrainConfig, rng: np.random.Generator) -> PatchImage | None:
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
    return PatchImage(pixels, sample.centre_px[kept], stain_sample([patches[i] for i in kept], rng))
