"""Classical features of a patch: texture, nuclei, glands and lumina.

They are computed from stain concentrations relative to those of the region, not from RGB, so that
the strength and hue of the stain have little influence.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ml.errors import ShapeError
from ml.imaging.tissue.glass import AVERAGED_PX, TISSUE_OD, averaged_haze
from ml.imaging.tissue.optical_density import optical_density
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
from ml.roi.stain.deconvolution import StainEstimate, deconvolve
from ml.types import ArrayBool, ArrayF32, ImageU8

PATCH_PX = 224  # resolution for which the scales and radii of the features are chosen
FEATURES_NAME = "classical-1"
"""Changed with the features, so that weights trained on other features are rejected."""

_MIN_DEVIATION = 2.0  # of the grey values of a patch that is not uniform

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
        patch: (224, 224, 3) uint8 RGB at the magnification of the encoder.
        stains: Stains of the region.
    Returns:
        (FEATURE_DIM,) float32, finite.
    Raises:
        ShapeError: Another shape or type.
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
        *_features_by_measure(granulometry, (haematoxylin, density, 1 - np.clip(density, 0, 1))),
        *_features_by_measure(band_energies, three),
        *_features_by_measure(radial_spectrum, three),
        *_features_by_measure(lbp_histogram, (haematoxylin, density)),
    ]
    return np.concatenate(parts).astype(np.float32)


def tissue_share(patch: ImageU8) -> float:
    """Share of the pixels of a patch (H, W, 3) uint8 RGB that are tissue, see ``patch_tissue``."""
    return float(patch_tissue(patch).mean())


def patch_tissue(patch: ImageU8) -> ArrayBool:
    """Mask of pixels darker than glass that are not tinted glass; empty for a uniform patch.

    Args:
        patch: (H, W, 3) uint8 RGB.
    Returns:
        (ceil(H / 4), ceil(W / 4)) bool, of every fourth row and column.
    """
    thin = patch[::AVERAGED_PX, ::AVERAGED_PX]
    if thin.std() <= _MIN_DEVIATION:
        return np.zeros(thin.shape[:2], bool)
    dark = optical_density(thin).max(axis=-1) > TISSUE_OD
    return np.asarray(dark & ~averaged_haze(patch))


def _features_by_measure(
    measure: Callable[[ArrayF32], ArrayF32], channels: tuple[ArrayF32, ...]
) -> list[ArrayF32]:
    return [measure(channel) for channel in channels]
