"""Stains: colour deconvolution, the stains of a slide, and making slides look alike.

>>> estimate = estimate_stain(slide)                  # once a slide, at low power
>>> patch = normalise(patch, estimate, load_target()) # every patch
"""

from __future__ import annotations

from ml.roi.stain.deconvolution import (
    RUIFROK_HE,
    WHITE,
    StainEstimate,
    deconvolve,
    estimate_stains,
    fixed_stains,
    optical_density,
    with_strength_kept,
)
from ml.roi.stain.estimate import (
    STAIN_METHODS,
    StainConfig,
    estimate_stain,
    estimate_stain_of_image,
)
from ml.roi.stain.normalise import NormalisedPatches, normalise
from ml.roi.stain.outline import tissue_outline
from ml.roi.stain.squares import tissue_squares
from ml.roi.stain.storage import load_target, stain_from_dict, stain_to_dict

__all__ = [
    "RUIFROK_HE",
    "STAIN_METHODS",
    "WHITE",
    "NormalisedPatches",
    "StainConfig",
    "StainEstimate",
    "deconvolve",
    "estimate_stain",
    "estimate_stain_of_image",
    "estimate_stains",
    "fixed_stains",
    "load_target",
    "normalise",
    "optical_density",
    "stain_from_dict",
    "stain_to_dict",
    "tissue_outline",
    "tissue_squares",
    "with_strength_kept",
]
