"""Patches with the stains they are measured by: normalised to the target slide, or as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ml.roi.config import EncoderConfig
from ml.roi.patches import Corner, PatchSource
from ml.roi.stain import (
    RUIFROK_HE,
    NormalisedPatches,
    StainEstimate,
    fixed_stains,
    load_target,
    with_strength_kept,
)
from ml.roi.stain.deconvolution import USUAL_DENSITY, USUAL_SCALE
from ml.types import ImageU8

STAINS = ("ruifrok", "nuclei", "macenko", "none")
"""What ``EncoderConfig.stain`` may be: published vectors scaled by how strongly the region is
stained; patches made to look like the target slide by an estimate of the whole image, from nuclei
or Macenko's way; nothing, the same vectors and scale for all."""
NORMALISED = ("nuclei", "macenko")
_PATCHES = 24  # of a region are looked at: enough for its quantiles
_STEP = 4  # every fourth pixel each way, for speed


def stained_patches(
    source: PatchSource,
    corners: list[Corner],
    config: EncoderConfig,
    estimate: Callable[[], StainEstimate],
) -> tuple[PatchSource, StainEstimate]:
    """Where to read the patches of a region from, and the stains to measure them by.

    Args:
        corners: of the patches the region is sampled by.
        estimate: gives the stains of the image; called only where the configuration needs them.
    """
    step = max(1, len(corners) // _PATCHES)
    chosen = (source.read(corner, config.sampling.patch_px) for corner in corners[::step])
    found, stains = choose_stains(config, estimate, chosen)
    return (source if found is None else NormalisedPatches(source, found, load_target())), stains


def choose_stains(
    config: EncoderConfig, estimate: Callable[[], StainEstimate], patches: Iterable[ImageU8]
) -> tuple[StainEstimate | None, StainEstimate]:
    """What patches are normalised by, if at all, and the stains to measure them by after that.

    Args:
        estimate: of the whole image; called only where the configuration needs it.
        patches: some of the region; read only where they are needed.
    Returns:
        The estimate and the stains of the target slide; or None and the published vectors, scaled
        by the patches' own strength, with the reason where the image cannot be normalised
        (immunostain, fluorescence, too little tissue).
    """
    reason = ""
    if config.stain in NORMALISED:
        found = estimate()
        if found.method != "none":
            return found, replace(load_target(), method=found.method, reason=found.reason)
        reason = found.reason
    if config.stain == "none":
        return None, _usual()
    pixels = np.concatenate([patch[::_STEP, ::_STEP].reshape(-1, 3) for patch in patches])
    stains = fixed_stains(pixels, reason=reason)
    return None, with_strength_kept(stains, config.keep_strength)


def _usual() -> StainEstimate:
    published = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
    return StainEstimate(published, np.array(USUAL_SCALE), USUAL_DENSITY, "none", "switched off")
