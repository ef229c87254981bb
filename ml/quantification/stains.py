"""Optical densities of the stains of a section."""

from __future__ import annotations

import numpy as np

from ml.imaging.tissue.optical_density import optical_density
from ml.quantification.config import Staining
from ml.roi.stain.deconvolution import RUIFROK_HE, unit_rows, with_residual
from ml.types import ArrayF32, ArrayF64, ImageU8

WHITE = (255.0, 255.0, 255.0)
HAEMATOXYLIN, EOSIN, DAB = "haematoxylin", "eosin", "dab"
_DAB_VECTOR = (0.268, 0.570, 0.776)  # Ruifrok and Johnston 2001, table 1


def stain_names(staining: Staining) -> tuple[str, str]:
    """The two stains of a section."""
    return HAEMATOXYLIN, EOSIN if staining is Staining.HE else DAB


def stain_matrix(staining: Staining) -> ArrayF64:
    """(3, 3) float64, rows of unit length: both stains, and the direction of neither."""
    second = RUIFROK_HE[1] if staining is Staining.HE else _DAB_VECTOR
    return with_residual(unit_rows(np.array([RUIFROK_HE[0], second])))


def channel_densities(image: ImageU8) -> ArrayF32:
    """Optical density of red, green and blue: (H, W, 3) float32, 0 for white."""
    return optical_density(image, WHITE)


def unmixed(densities: ArrayF32, staining: Staining) -> ArrayF32:
    """Densities of both stains, (H, W, 2) float32, at least 0.

    Args:
        densities: (H, W, 3), see ``channel_densities``.
    Source: Ruifrok and Johnston 2001, with the published vectors and an orthogonal residual.
    """
    unmix = np.linalg.inv(stain_matrix(staining))[:, :2]
    return np.asarray(np.maximum(densities @ unmix.astype(np.float32), 0), np.float32)
