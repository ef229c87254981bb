"""Dictionary of textons: clusters of whitened local measurements of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ml.config import config_hash
from ml.errors import BadInputError
from ml.imaging.slides.slide import open_slide
from ml.networks.textons import TextonBank, TextonConfig
from ml.roi.encoders.textons import TextonEncoder, contrast_jets, save_textons
from ml.roi.measures.features import tissue_share
from ml.training.common.clusters import k_means
from ml.training.roi.encoder.pool import MIN_TISSUE_SHARE
from ml.training.roi.tiles import Tile, balanced
from ml.types import ArrayF32, ImageU8, Progress, no_progress

TILES_PER_PATIENT = 24
"""Largest number of tiles of a patient."""


@dataclass(frozen=True, slots=True)
class TextonFitConfig:
    """Configuration of a dictionary."""

    points: int = 100  # measured on each tile
    whitening: float = 0.05  # added to the eigenvalues of the correlation
    rounds: int = 20  # of k-means


def fit_textons(
    tiles: Sequence[Tile],
    *,
    config: TextonConfig | None = None,
    fit: TextonFitConfig | None = None,
    max_per_patient: int = TILES_PER_PATIENT,
    seed: int = 0,
    out: Path | None = None,
    progress: Progress = no_progress,
) -> TextonEncoder:
    """Learn a dictionary.

    Args:
        tiles: at about 1 um per pixel, see ``read_tiles``; those that are nearly blank are left
            out.
        max_per_patient: most tiles of one patient.
        out: file to write as well; its version is a hash of both configurations.
    Raises:
        BadInputError: no tile holds tissue.
    """
    config, fit = config or TextonConfig(), fit or TextonFitConfig()
    chosen = balanced(tiles, max_per_patient, seed=seed)
    sampled: list[ArrayF32] = []
    for number, tile in enumerate(chosen, 1):
        pixels = tile_pixels(tile)
        if tissue_share(pixels) >= MIN_TISSUE_SHARE:
            rng = np.random.default_rng((seed, 6, number))
            jets = contrast_jets(pixels, config)
            sampled.append(jets[rng.permutation(len(jets))[: fit.points]])
        progress(number, len(chosen), "textons: measuring")
    if not sampled:
        raise BadInputError(
            f"textons: expected tissue to learn from, found none in {len(chosen)} tiles"
        )
    bank = fit_bank(np.concatenate(sampled), config, fit=fit, seed=seed)
    encoder = TextonEncoder(bank, config)
    if out is not None:
        version = f"{config_hash(config)}-{config_hash(fit)}"
        save_textons(out, encoder, version=version)
    return encoder


def tile_pixels(tile: Tile) -> ImageU8:
    """Read a tile, (H, W, 3) uint8."""
    with open_slide(tile.path) as slide:
        return slide.read_scaled((0, 0), (slide.info.width_px, slide.info.height_px), 1.0)


def fit_bank(
    jets: ArrayF32, config: TextonConfig, *, fit: TextonFitConfig, seed: int
) -> TextonBank:
    """Learn a dictionary of measurements (N, jet_dim) by k-means after whitening."""
    bank = TextonBank(config)
    rows = torch.from_numpy(jets).double()
    bank.mean.copy_(rows.mean(dim=0))
    bank.deviation.copy_(rows.std(dim=0).clamp(min=1e-6))
    clipped = bank.whiten_jets(rows.float())  # the matrix is still the identity
    centred = (clipped - clipped.mean(dim=0)).double()
    value, vector = torch.linalg.eigh(centred.T @ centred / len(centred))
    bank.whiten.copy_(vector / (value.clamp(min=0) + fit.whitening).sqrt())
    bank.words.copy_(k_means(bank.whiten_jets(rows.float()), config.words, fit.rounds, seed))
    return bank
