"""Self-supervised training of the ROI encoder: SimCLR over graphs of random regions.

Run it by ``python -m ml train roi``. The same configuration gives the same weights, interrupted or
not: every step draws from a generator of its own, seeded by (seed, step).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ml.errors import BadInputError
from ml.networks.gcn import ProjectionHead, RoiGcn
from ml.roi.config import EncoderConfig, config_from_dict, config_hash
from ml.roi.features import block_weights
from ml.roi.graph import build_graph
from ml.roi.weights import save_encoder
from ml.training.augment import vertex_dropout
from ml.training.losses import nt_xent
from ml.training.pool import PatchPool, draw_region, load_or_build_pool
from ml.types import ArrayF32, ArrayI64, Progress, no_progress

SLIDES = (
    "histology/slides/cmu-1-small-region.svs",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/her2st-c2.tif",
    "histology/slides/her2st-b-d2.tif",
)
SECTIONS = "histology/sections"
_IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs", ".ndpi"}


@dataclass(frozen=True, slots=True)
class RoiTrainConfig:
    """One training run."""

    name: str = "roi-default"  # of the encoder
    version: str = "1.0"  # of the encoder
    sources: tuple[str, ...] = (*SLIDES, SECTIONS)  # files or folders, relative to the data folder
    pool_density: float = 2.5  # patches per patch area of a slide
    looks: int = 3  # sets of features a patch has: the slide as it is, and augmented ones
    stain_strength: float = 0.15  # see augment.random_look
    zoom_strength: float = 0.15  # see augment.random_look
    radius_px: tuple[float, float] = (120.0, 900.0)  # regions, pixels at 10x
    vertices: tuple[int, int] = (4, 64)  # of a region
    drop: tuple[float, float] = (0.2, 0.6)  # share of vertices a view loses
    batch: int = 48  # regions a step
    steps: int = 400
    head_dim: int = 64  # output of the projection head
    temperature: float = 0.2  # tau of equation 1
    learning_rate: float = 1e-3  # AdamW
    weight_decay: float = 1e-4  # AdamW
    checkpoint_every: int = 100  # steps
    calibration_regions: int = 1000  # regions that the context part is standardised by
    seed: int = 0
    encoder: EncoderConfig = field(default_factory=EncoderConfig)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train roi``."""
    parser.add_argument("--data", type=Path, required=True, help="folder the sources are in")
    parser.add_argument("--out", type=Path, required=True, help="folder for pool and checkpoints")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_roi``."""
    config = RoiTrainConfig()
    if args.config is not None:
        try:
            values = json.loads(args.config.read_text())
        except ValueError as error:
            raise BadInputError(f"{args.config.name}: not JSON: {error}") from error
        config = config_from_dict(RoiTrainConfig, values, where=args.config.name)
    return train_roi(config, data=args.data, out=args.out, weights=args.weights, progress=progress)


def train_roi(
    config: RoiTrainConfig,
    *,
    data: Path,
    out: Path,
    weights: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train an encoder, going on from a checkpoint in ``out`` if there is one.

    Args:
        config: the run; a checkpoint of another configuration is refused.
        data: folder the sources are relative to.
        out: folder for patch features and the checkpoint.
        weights: file of the encoder, by default ``out/<name>.safetensors``.
        progress: may raise ``CancelledError``; the next run goes on from the last checkpoint.
    Returns:
        A plain summary: sources, patches, losses, hash, file.
    Source: the retrieval paper, section III-B.
    """
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    files = source_files(config, data)
    pools = _pools(config, files, out, progress)
    run = _Run(config, pools, out / "checkpoint.pt")
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


def source_files(config: RoiTrainConfig, data: Path) -> list[Path]:
    """The files to train on, folders expanded in name order.

    Raises:
        BadInputError: a source is not there, or there is none.
    """
    files: list[Path] = []
    for source in config.sources:
        path = data / source
        if path.is_dir():
            files += sorted(p for p in path.iterdir() if p.suffix.lower() in _IMAGE_SUFFIXES)
        elif path.is_file():
            files.append(path)
        else:
            raise BadInputError(f"source {source!r} is not in the data folder")
    if not files:
        raise BadInputError("no source to train on")
    return files


def _pools(
    config: RoiTrainConfig, files: list[Path], out: Path, progress: Progress
) -> list[PatchPool]:
    what = dataclasses.replace(config, steps=0, batch=0, temperature=0.0, learning_rate=0.0)
    key = config_hash(
        _PoolKey(
            what.encoder,
            what.pool_density,
            what.looks,
            what.stain_strength,
            what.zoom_strength,
            what.seed,
        )
    )
    return [
        load_or_build_pool(
            file,
            out / f"pool-{key}-{file.stem}.npz",
            config=config.encoder,
            density=config.pool_density,
            looks=config.looks,
            strength=(config.stain_strength, config.zoom_strength),
            seed=config.seed + number,
            progress=progress,
        )
        for number, file in enumerate(files)
    ]


@dataclass(frozen=True, slots=True)
class _PoolKey:
    """What the features of a pool depend on."""

    encoder: EncoderConfig
    density: float
    looks: int
    stain_strength: float
    zoom_strength: float
    seed: int


class _Run:
    """State of a run: network, head, optimiser, step, losses."""

    def __init__(self, config: RoiTrainConfig, pools: list[PatchPool], checkpoint: Path) -> None:
        self.config, self.pools, self.checkpoint = config, pools, checkpoint
        self.trees = [cKDTree(pool.centre_px) for pool in pools]
        share = np.sqrt([len(pool) for pool in pools])
        self.share = share / share.sum()
        torch.manual_seed(config.seed)
        self.network = RoiGcn(config.encoder.network)
        out_dim = config.encoder.network.out_dim
        self.head = ProjectionHead(out_dim, out_dim, config.head_dim)
        self._standardise()
        self.optimiser = torch.optim.AdamW(
            [*self.network.parameters(), *self.head.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self.losses: list[float] = []

    def train(self, progress: Progress) -> list[float]:
        """Take the steps that are left; returns the losses of all."""
        config = self.config
        while len(self.losses) < config.steps:
            self.losses.append(self._step(len(self.losses)))
            done = len(self.losses)
            if done % config.checkpoint_every == 0 or done == config.steps:
                self.save()
            progress(done, config.steps, f"training, loss {self.losses[-1]:.3f}")
        return self.losses

    def calibrate(self) -> None:
        """Set the buffers that bring the context part to zero mean and unit deviation."""
        rng = np.random.default_rng((self.config.seed, 1 << 20))
        graphs = []
        for _ in range(self.config.calibration_regions):
            source, rows = self._region(rng)
            graphs.append((source, 0, rows))
        x, edge_index, batch = self._batch(graphs)
        with torch.no_grad():
            context = self.network.context(self.network.standardised(x), edge_index, batch)
            self.network.context_mean.copy_(context.mean(dim=0))
            self.network.context_scale.copy_(1 / context.std(dim=0).clamp(min=1e-3))

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "hash": config_hash(self.config),
            "network": self.network.state_dict(),
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "losses": self.losses,
        }
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self.checkpoint)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one.

        Raises:
            BadInputError: it belongs to another configuration.
        """
        if not self.checkpoint.is_file():
            return
        state = torch.load(self.checkpoint, weights_only=True)
        if state["hash"] != config_hash(self.config):
            raise BadInputError(
                "the output folder holds a checkpoint of another configuration"
                f" ({state['hash']}, this is {config_hash(self.config)}): choose another folder"
            )
        self.network.load_state_dict(state["network"])
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.losses = list(state["losses"])

    def _standardise(self) -> None:
        """Feature mean and scale, every slide counting by its share, looks included."""
        means = [pool.features.mean(axis=(0, 1), dtype=np.float64) for pool in self.pools]
        squares = [
            np.square(pool.features, dtype=np.float64).mean(axis=(0, 1)) for pool in self.pools
        ]
        mean = np.average(means, axis=0, weights=self.share)
        square = np.average(squares, axis=0, weights=self.share)
        deviation = np.sqrt(np.maximum(square - mean**2, 1e-6))
        scale = block_weights() / deviation
        self.network.feature_mean.copy_(torch.from_numpy(mean.astype(np.float32)))
        self.network.feature_scale.copy_(torch.from_numpy(scale.astype(np.float32)))

    def _step(self, step: int) -> float:
        rng = np.random.default_rng((self.config.seed, step))
        views: list[list[tuple[int, int, ArrayI64]]] = [[], []]
        for _ in range(self.config.batch):
            source, rows = self._region(rng)
            for view in views:
                look = int(rng.integers(self.config.looks))
                kept = vertex_dropout(rng, len(rows), drop=self.config.drop, keep_at_least=2)
                view.append((source, look, rows[kept]))
        first, second = (self._project(view) for view in views)
        loss = nt_xent(first, second, temperature=self.config.temperature)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    def _region(self, rng: np.random.Generator) -> tuple[int, ArrayI64]:
        source = int(rng.choice(len(self.pools), p=self.share))
        rows = draw_region(
            self.pools[source],
            self.trees[source],
            rng,
            radius_px=self.config.radius_px,
            vertices=self.config.vertices,
        )
        return source, rows

    def _project(self, view: list[tuple[int, int, ArrayI64]]) -> Tensor:
        x, edge_index, batch = self._batch(view)
        context = self.network.context(self.network.standardised(x), edge_index, batch)
        return self.head(context)

    def _batch(self, graphs: list[tuple[int, int, ArrayI64]]) -> tuple[Tensor, Tensor, Tensor]:
        """(N, C) features, (2, M) edges and (N,) graph numbers of many graphs side by side."""
        x: list[ArrayF32] = []
        edges: list[ArrayI64] = []
        sizes: list[int] = []
        for source, look, rows in graphs:
            pool = self.pools[source]
            graph = build_graph(
                pool.features[look, rows],
                pool.centre_px[rows],
                edge_px=self.config.encoder.edge_px,
            )
            x.append(graph.x)
            edges.append(graph.edge_index + sum(sizes))
            sizes.append(len(graph))
        return (
            torch.from_numpy(np.concatenate(x)),
            torch.from_numpy(np.concatenate(edges, axis=1)),
            torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        )
