"""Stains of the patches of a region, and normalisation of the patches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ml.roi.config import EncoderConfig
from ml.roi.patches import Corner, PatchSource
from ml.roi.stain.deconvolution import (
    RUIFROK_HE,
    TYPICAL_DENSITY,
    TYPICAL_SCALE,
    StainEstimate,
    published_stains,
    with_partial_scale,
)
from ml.roi.stain.normalise import NormalisedPatches
from ml.roi.stain.storage import load_target
from ml.types import ImageU8

STAINS = ("ruifrok", "nuclei", "macenko", "none")
"""Values of ``EncoderConfig.stain``: published vectors scaled by the staining of the region;
patches normalised to the target slide by an estimate of the image (from nuclei, or by Macenko's
method); or published vectors and a fixed scale."""
NORMALISED = ("nuclei", "macenko")
_PATCHES = 24  # sample of the patches of a region for quantiles
_STEP = 4  # every fourth row and column, for speed


def stained_patches(
    source: PatchSource,
    corners: list[Corner],
    config: EncoderConfig,
    estimate: Callable[[], StainEstimate],
) -> tuple[PatchSource, StainEstimate]:
    """Source of the patches of a region, normalised if configured, and the stains for measures.

    Args:
        corners: Corners of the patches.
        estimate: Estimates the stains of the image; called only if needed.
    """
    step = max(1, len(corners) // _PATCHES)
    sample = (source.read(corner, config.sampling.patch_px) for corner in corners[::step])
    stain, stains = choose_stains(config, estimate, sample)
    return (source if stain is None else NormalisedPatches(source, stain, load_target())), stains


def choose_stains(
    config: EncoderConfig, estimate: Callable[[], StainEstimate], patches: Iterable[ImageU8]
) -> tuple[StainEstimate | None, StainEstimate]:
    """Choose the stain normalisation of patches, and the stains for measures after it.

    Args:
        estimate: Estimates the stains of the image; called only if needed.
        patches: Sample of the patches of the region; read only if needed.
    Returns:
        The estimate and the stains of the target slide; or None and the published vectors, scaled
        by the staining of the patches, with the reason if the image cannot be normalised
        (immunostain, fluorescence, too little tissue).
    """
    reason = ""
    if config.stain in NORMALISED:
        slide_stain = estimate()
        if slide_stain.method != "none":
            return slide_stain, replace(
                load_target(), method=slide_stain.method, reason=slide_stain.reason
            )
        reason = slide_stain.reason
    if config.stain == "none":
        return None, _typical_stains()
    pixels = np.concatenate([patch[::_STEP, ::_STEP].reshape(-1, 3) for patch in patches])
    stains = published_stains(pixels, reason=reason)
    return None, with_partial_scale(stains, config.keep_strength)


def _typical_stains() -> StainEstimate:
    published = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
    return StainEstimate(
        published, np.array(TYPICAL_SCALE), TYPICAL_DENSITY, "none", "switched off"
    )
