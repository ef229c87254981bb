"""``python -m ml train roi``: the ROI encoder's metric, and SimCLR over graphs of regions.

For an encoder without graph layers only the metric is learned, without steps.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from ml.config import config_from_file, config_hash
from ml.errors import BadInputError, WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.networks.gcn import RoiGcn
from ml.networks.vertex_mean import VertexMean
from ml.roi.encoders.patch_cnn import NAME as PATCH_CNN
from ml.roi.encoders.patch_cnn import load_patch_cnn
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.weights import SHIPPED_PATCH_CNN, read_graph_encoder, save_encoder
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.common.sources import source_files
from ml.training.roi.encoder.config import PoolKey, RoiTrainConfig, TissueKey
from ml.training.roi.encoder.learner import RoiLearner, set_metric
from ml.training.roi.encoder.pool import PatchPool, load_or_build_pool
from ml.training.roi.encoder.tissue import load_or_measure
from ml.types import ArrayF32, Progress


class RoiSummary(RunSummary):
    """Result of a training of the ROI encoder: files read, patches in the pools, steps taken."""

    sources: list[str]
    patches: int
    steps: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train roi``."""
    add_run_arguments(parser, has_start=True)
    parser.add_argument(
        "--patch-weights", type=Path, help="our own patch encoder (the shipped one)"
    )


def run(args: argparse.Namespace, progress: Progress) -> RoiSummary:
    """Train by command line arguments; see ``train_roi``."""
    config = config_from_file(RoiTrainConfig(), args.config)
    training = TrainingRun.of(args, config, progress)
    return train_roi(training, data=args.data, patch_weights=args.patch_weights)


def train_roi(
    run: TrainingRun[RoiTrainConfig], *, data: Path, patch_weights: Path | None = None
) -> RoiSummary:
    """Train an encoder; features of patches are cached in the run's folder.

    Args:
        run: resumed from its checkpoint, or started from ``run.start``, if there is one; the metric
            is learned again. Without graph layers only the patch encoder is taken from the start.
        data: folder the sources are relative to.
        patch_weights: file of our own patch encoder, by default the shipped one.
    Raises:
        BadInputError: a source is missing, or held out as well; or the network's sizes do not fit.
    Source: the retrieval paper, section III-B.
    """
    config = run.config
    has_graph = _has_graph(run)
    files = source_files(config.sources, data) if has_graph else []
    if run.start is not None and not has_graph:
        if patch_weights is not None:
            raise BadInputError("--patch-weights: without graph layers, --from has its own")
        patches, digest = _started_patches(config, run.start)
    else:
        patches, digest = _patch_encoder(config, patch_weights)
    held_out_files = source_files(config.held_out, data) if has_graph and config.held_out else []
    if both := sorted({str(file.relative_to(data)) for file in set(files) & set(held_out_files)}):
        raise BadInputError(f"held_out: {', '.join(both)}: also among the sources")
    pools = _pools(run, patches, digest, files, data)
    held_out = _pools(run, patches, digest, held_out_files, data)
    atlas = _atlas_features(run, patches, digest, data)
    network: RoiGcn | VertexMean
    with run.learning():
        if has_graph:
            learner = RoiLearner(
                config, pools, atlas, start=run.start, held_out=held_out, compute=run.compute
            )
            run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
            learner.calibrate()
            network = learner.network
        else:
            network = VertexMean(config.encoder.network)
            set_metric(network, config, atlas)
    save_encoder(
        run.weights,
        name=config.name,
        version=config.version,
        config=config.encoder,
        network=network,
        patches=patches,
    )
    summary: RoiSummary = {
        **run.summary(),
        "sources": [file.name for file in files],
        "patches": sum(len(pool) for pool in pools),
        "steps": len(run.losses),
    }
    run.write_log(summary)
    return summary


def _has_graph(run: TrainingRun[RoiTrainConfig]) -> bool:
    network = run.config.encoder.network
    if network.layers:
        return True
    if network.vertex_dim >= network.in_dim:
        raise BadInputError(
            f"encoder.network.vertex_dim: expected fewer than the {network.in_dim} of the"
            f" features, got {network.vertex_dim}"
        )
    return False


def _started_patches(config: RoiTrainConfig, start: Path) -> tuple[PatchEncoder, str]:
    """Patch encoder of an encoder without graph layers, and its digest."""
    stored = read_graph_encoder(start)
    if stored.config != config.encoder:
        raise WeightsError(
            f"{start.name}: holds {stored.config}, but the run trains {config.encoder}"
        )
    return stored.patches, hashlib.sha256(start.read_bytes()).hexdigest()[:16]


def _patch_encoder(config: RoiTrainConfig, weights: Path | None) -> tuple[PatchEncoder, str]:
    """Patch encoder, and for our own a digest of its weights and readout."""
    cnn, digest = None, ""
    if config.encoder.features == PATCH_CNN:
        weights = weights or WEIGHTS_FOLDER / SHIPPED_PATCH_CNN
        readout = config.encoder.patch_cnn.readout
        cnn = load_patch_cnn(weights, readout=readout)
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:16] + readout
    encoder = make_patch_encoder(config.encoder.features, cnn=cnn)
    if encoder.dim != config.encoder.network.in_dim:
        raise BadInputError(
            f"encoder.network.in_dim: expected {encoder.dim}, the length of"
            f" {encoder.name!r}, got {config.encoder.network.in_dim}"
        )
    return encoder, digest


def _pool_key(config: RoiTrainConfig, digest: str) -> str:
    encoder = config.encoder
    return config_hash(
        PoolKey(
            encoder.features + digest,
            encoder.stain,
            encoder.keep_strength,
            encoder.sampling,
            density=config.pool_density,
            looks=config.looks,
            stain_strength=config.stain_strength,
            zoom_strength=config.zoom_strength,
            seed=config.seed,
        )
    )


def _pools(
    run: TrainingRun[RoiTrainConfig],
    patches: PatchEncoder,
    digest: str,
    files: Sequence[Path],
    data: Path,
) -> list[PatchPool]:
    """Pools of patches of each file, cached."""
    config, key = run.config, _pool_key(run.config, digest)

    def cache_path(file: Path) -> Path:
        # Files of two folders may have the same name.
        place = hashlib.sha256(str(file.relative_to(data)).encode()).hexdigest()[:8]
        return run.out / f"pool-{key}-{file.stem}-{place}.npz"

    return [
        load_or_build_pool(
            file,
            cache_path(file),
            config=config.encoder,
            encoder=patches,
            density=config.pool_density,
            looks=config.looks,
            strength=(config.stain_strength, config.zoom_strength),
            seed=config.seed + number,
            progress=run.progress,
        )
        for number, file in enumerate(files)
    ]


def _atlas_features(
    run: TrainingRun[RoiTrainConfig], patches: PatchEncoder, digest: str, data: Path
) -> list[ArrayF32]:
    """Features (V, N, C) of each patient, for the metric."""
    config = run.config
    if not config.atlas and not config.slides:
        raise BadInputError("atlas, slides: expected tissue to learn the metric from, got none")
    key = config_hash(TissueKey(_pool_key(config, digest), config.atlas, config.slides))
    return load_or_measure(
        data,
        data / config.atlas if config.atlas else None,
        run.out / f"atlas-{key}.npz",
        slides=config.slides,
        encoder=patches,
        looks=config.looks,
        stain=config.stain_strength,
        seed=config.seed,
        progress=run.progress,
    )
