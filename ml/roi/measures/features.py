"""Classical features of a patch: what a pathologist would call texture, nuclei, glands and lumina.

All of them see stain concentrations relative to the region's own, never RGB, so that a stronger or
bluer stain changes little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ml.errors import ShapeError
from ml.roi.measures.structure import (
    CONCENTRATION_DIM,
    GRANULOMETRY_DIM,
    NUCLEI_DIM,
    SPACE_DIM,
    concentrations,
    granulometry,
    nuclei,
    open_space,
)
from ml.roi.measures.texture import (
    ENERGY_DIM,
    LBP_DIM,
    SPECTRUM_DIM,
    band_energies,
    lbp_histogram,
    radial_spectrum,
)
from ml.roi.stain import StainEstimate, deconvolve, optical_density
from ml.types import ArrayF32, ImageU8

PATCH_PX = 224  # what the scales and radii of the features are laid out for
FEATURES_NAME = "classical-1"
"""Changes whenever a feature changes: weights trained on another set are refused."""

FEATURE_DIM = (
    CONCENTRATION_DIM
    + NUCLEI_DIM
    + SPACE_DIM
    + 3 * (GRANULOMETRY_DIM + ENERGY_DIM + SPECTRUM_DIM)
    + 2 * LBP_DIM
)


def patch_features(patch: ImageU8, stains: StainEstimate) -> ArrayF32:
    """Features of one patch.

    Args:
        patch: (224, 224, 3) uint8 RGB at the encoder's magnification.
        stains: stains of the region the patch is from.
    Returns:
        (FEATURE_DIM,) float32, finite.
    Raises:
        ShapeError: another shape or type.
    """
    if patch.shape != (PATCH_PX, PATCH_PX, 3) or patch.dtype != np.uint8:
        raise ShapeError(
            "patch",
            expected=f"({PATCH_PX}, {PATCH_PX}, 3) uint8",
            actual=f"{patch.shape} {patch.dtype}",
        )
    stained = deconvolve(patch, stains)
    haematoxylin = np.ascontiguousarray(stained[..., 0])
    eosin = np.ascontiguousarray(stained[..., 1])
    density = np.ascontiguousarray(optical_density(patch).mean(axis=2) / stains.density_scale)
    three = (haematoxylin, eosin, density)
    parts = [
        concentrations(haematoxylin, eosin, density),
        nuclei(haematoxylin),
        open_space(density),
        *_each(granulometry, (haematoxylin, density, 1 - np.clip(density, 0, 1))),
        *_each(band_energies, three),
        *_each(radial_spectrum, three),
        *_each(lbp_histogram, (haematoxylin, density)),
    ]
    return np.concatenate(parts).astype(np.float32)


def tissue_share(patch: ImageU8) -> float:
    """Share of pixels that are neither background nor uniform: 0 on an empty field.

    Args:
        patch: (H, W, 3) uint8 RGB.
    """
    thin = patch[::4, ::4]
    dark = optical_density(thin).max(axis=-1) > 0.06
    return float(dark.mean()) if thin.std() > 2.0 else 0.0


def _each(
    measure: Callable[[ArrayF32], ArrayF32], channels: tuple[ArrayF32, ...]
) -> list[ArrayF32]:
    return [measure(channel) for channel in channels]
