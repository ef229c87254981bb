"""``python -m ml train endoscopy``: vocabulary and projection of the endoscopy encoder.

Nothing is learned by gradient; the descriptor is already trained.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from shapely import affinity
from shapely.geometry import box
from shapely.geometry.base import BaseGeometry
from torch import Tensor

from ml.config import config_from_file
from ml.errors import BadInputError, EmptyRegionError
from ml.imaging.slides.slide import open_slide
from ml.keypoints.descriptors.tessera import load
from ml.networks.vlad import Vlad
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig, RegionView
from ml.roi.keypoints.weights import load_keypoint_encoder, save_keypoint_encoder
from ml.training.common.clusters import k_means
from ml.training.common.run import RunSummary, TrainingRun, add_run_arguments
from ml.training.common.sources import source_files
from ml.training.common.start import take_weights
from ml.types import Progress, no_progress

STILLS = "endoscopy/laparoscopy-stills"
WINDOW = (0.16, 0.0, 0.76, 0.8)
"""Area of ``STILLS`` inside the scope's circle, without text and logo."""


@dataclass(frozen=True, slots=True)
class EndoscopyTrainConfig:
    """One fit of the encoder."""

    name: str = "roi-endoscopy"  # of the encoder
    version: str = "2.0"  # of the encoder
    source: str = STILLS  # folder of stills, relative to the data folder
    left_out: tuple[str, ...] = ("00010-", "00011-", "00015-")  # operations for ``evaluate places``
    window: tuple[float, ...] = WINDOW  # part of a still that regions are drawn from
    regions: int = 1500  # drawn over all stills
    side_px: tuple[float, float] = (60.0, 220.0)  # of a region, drawn log-uniformly
    rows: int = 30  # descriptors of a region that the vocabulary is learned from
    rounds: int = 30  # of k-means
    power: float = 0.5  # of the eigenvalues that directions are divided by; 0.5 whitens
    seed: int = 0
    encoder: KeypointEncoderConfig = field(default_factory=KeypointEncoderConfig)


class EndoscopySummary(RunSummary):
    """Result of the fit: number of regions, and the share of variance that the vector keeps."""

    regions: int
    kept_variance: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train endoscopy``."""
    add_run_arguments(parser, has_start=True)


def run(args: argparse.Namespace, progress: Progress) -> EndoscopySummary:
    """Fit by command line arguments; see ``train_endoscopy``."""
    config = config_from_file(EndoscopyTrainConfig(), args.config)
    return train_endoscopy(TrainingRun.of(args, config, progress), data=args.data)


def train_endoscopy(run: TrainingRun[EndoscopyTrainConfig], *, data: Path) -> EndoscopySummary:
    """Fit the vocabulary and the projection, and write the encoder.

    Args:
        run: with ``run.start`` the vocabulary starts from that of those weights.
        data: folder the stills are in.
    Raises:
        BadInputError: no stills, or fewer regions than the vector has directions.
    """
    config = run.config
    with run.learning():
        network = Vlad(config.encoder.vlad)
        if run.start is not None:
            take_weights(network, load_keypoint_encoder(run.start).network, run.start)
        described = _described_regions(run, network, data)
        if len(described) <= config.encoder.vlad.out_dim:
            raise BadInputError(
                f"regions: expected more than {config.encoder.vlad.out_dim} with texture, one for"
                f" each direction of the vector, got {len(described)}"
            )
        rng = np.random.default_rng((config.seed, 1))
        chosen = [rows[rng.permutation(len(rows))[: config.rows]] for rows in described]
        words = k_means(
            torch.cat(chosen),
            config.encoder.vlad.words,
            config.rounds,
            config.seed,
            start=network.words.clone() if run.start is not None else None,
        )
        network.words.copy_(words)
        vectors = torch.stack([network.aggregate(rows) for rows in described])
        kept_variance = _set_projection(network, vectors, config.power)
    save_keypoint_encoder(
        run.weights,
        name=config.name,
        version=config.version,
        config=config.encoder,
        network=network,
    )
    summary: EndoscopySummary = {
        **run.summary(),
        "regions": len(described),
        "kept_variance": kept_variance,
    }
    run.write_log(summary)
    return summary


def stills_of(config: EndoscopyTrainConfig, data: Path) -> list[Path]:
    """Stills to train on, in name order.

    Raises:
        BadInputError: there are none, or all are left out.
    """
    paths = source_files([config.source], data)
    files = [path for path in paths if not path.name.startswith(config.left_out)]
    if not files:
        raise BadInputError(f"{config.source}: every still is left out")
    return files


def drawn_views(
    encoder: KeypointEncoder,
    config: EndoscopyTrainConfig,
    data: Path,
    progress: Progress = no_progress,
) -> list[RegionView]:
    """Draw squares at random positions and angles of the stills to train on.

    Args:
        encoder: brings the squares to its size.
        data: folder the stills are in.
    Raises:
        BadInputError: there are none, or all are left out.
    """
    files = stills_of(config, data)
    views_per_file = -(-config.regions // len(files))
    views: list[RegionView] = []
    for number, path in enumerate(files):
        rng = np.random.default_rng((config.seed, 2, number))
        with open_slide(path) as slide:
            size = (slide.info.width_px, slide.info.height_px)
            image = slide.read_scaled((0, 0), size, 1.0)
        views += [
            encoder.view_of_image(image, _square(size, rng, config)) for _ in range(views_per_file)
        ]
        progress(number + 1, len(files), "reading")
    return views[: config.regions]


def _square(
    size: tuple[int, int], rng: np.random.Generator, config: EndoscopyTrainConfig
) -> BaseGeometry:
    left, top, right, bottom = np.array(config.window) * np.tile(size, 2)
    side = float(np.exp(rng.uniform(*np.log(config.side_px))))
    x, y = rng.uniform([left + side / 2, top + side / 2], [right - side / 2, bottom - side / 2])
    square = box(x - side / 2, y - side / 2, x + side / 2, y + side / 2)
    return affinity.rotate(square, float(rng.uniform(0, 360)))


def _described_regions(
    run: TrainingRun[EndoscopyTrainConfig], network: Vlad, data: Path
) -> list[Tensor]:
    """(N, D) descriptors of each region with texture."""
    config = run.config
    encoder = KeypointEncoder(
        name=config.name,
        version=config.version,
        config_hash="",
        config=config.encoder,
        network=network,
        descriptor=load(),
    )
    views = drawn_views(encoder, config, data, run.progress)
    descriptors: list[Tensor] = []
    for number, view in enumerate(views, 1):
        with suppress(EmptyRegionError):
            descriptors.append(torch.from_numpy(encoder.describe(view)[1]))
        run.progress(number, len(views), "describing")
    return descriptors


def _set_projection(network: Vlad, vectors: Tensor, power: float) -> float:
    """Set mean and principal directions of vectors (N, C); returns their share of the variance."""
    mean = vectors.mean(dim=0)
    centred = (vectors - mean).double()
    _, singular, directions = torch.linalg.svd(centred, full_matrices=False)
    variance = singular.square() / len(vectors)
    size = network.config.out_dim
    scale = variance[:size].pow(-power)
    network.mean.copy_(mean)
    network.projection.copy_((directions[:size] * scale[:, None]).T.float())
    return float(variance[:size].sum() / variance.sum())
