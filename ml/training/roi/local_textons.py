"""The dictionary of textons on locally normalised stains, learned from tiles of many patients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ml.config import config_hash
from ml.imaging.slides import open_slide
from ml.networks.textons import LocalTextonConfig
from ml.roi.encoders.local_textons import LocalTextonEncoder, contrast_jets, save_local_textons
from ml.roi.features import tissue_share
from ml.training.roi.pool import MIN_TISSUE_SHARE
from ml.training.roi.textons import TextonFitConfig, fit_textons
from ml.training.roi.tiles import Tile, balanced
from ml.types import ArrayF32, ImageU8, Progress, no_progress

TILES_PER_PATIENT = 24
"""Patients count equally up to this: most of the tables we know hold as many of each."""


def fit_local_textons(
    tiles: Sequence[Tile],
    *,
    config: LocalTextonConfig | None = None,
    fit: TextonFitConfig | None = None,
    each: int = TILES_PER_PATIENT,
    seed: int = 0,
    out: Path | None = None,
    progress: Progress = no_progress,
) -> LocalTextonEncoder:
    """Learn a dictionary.

    Args:
        tiles: at about 1 um per pixel, see ``read_tiles``; those that are nearly blank are left
            out.
        each: most tiles of one patient.
        out: file to write it to as well, its version being a hash of both configurations.
    """
    config, fit = config or LocalTextonConfig(), fit or TextonFitConfig()
    chosen = balanced(tiles, each, seed=seed)
    found: list[ArrayF32] = []
    for done, tile in enumerate(chosen, 1):
        pixels = tile_pixels(tile)
        if tissue_share(pixels) >= MIN_TISSUE_SHARE:
            rng = np.random.default_rng((seed, 6, done))
            jets = contrast_jets(pixels, config)
            found.append(jets[rng.permutation(len(jets))[: fit.points]])
        progress(done, len(chosen), "local textons: measuring")
    bank = fit_textons(np.concatenate(found), config, fit=fit, seed=seed)
    encoder = LocalTextonEncoder(bank, config)
    if out is not None:
        version = f"{config_hash(config)}-{config_hash(fit)}"
        save_local_textons(out, encoder, version=version)
    return encoder


def tile_pixels(tile: Tile) -> ImageU8:
    """(H, W, 3) uint8 of a whole tile."""
    with open_slide(tile.path) as slide:
        return slide.read_scaled((0, 0), (slide.info.width_px, slide.info.height_px), 1.0)
