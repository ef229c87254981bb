"""Local normalisation of stains, which removes the colour and strength of a slide."""

from __future__ import annotations

import cv2
import numpy as np

from ml.imaging.tissue.optical_density import optical_density
from ml.roi.stain.deconvolution import RUIFROK_HE, estimate_stains
from ml.types import ArrayF32, ImageU8

_PUBLISHED = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
_THIN = 2
"""Subsampling for the estimation of the vectors."""
_SHRINK = 4
"""Subsampling of local means, which are smooth."""


def local_contrast(
    image: ImageU8, *, sigma_px: float = 30.0, floor_od: float = 0.05, own_vectors: bool = False
) -> ArrayF32:
    """Standardise haematoxylin and eosin of each pixel by their local mean and deviation.

    The strength of the stain has no influence if the deviation is well above ``floor_od``.

    Args:
        image: (H, W, 3) uint8 RGB, about 1 um per pixel.
        sigma_px: Standard deviation of the local Gaussian window.
        floor_od: Added to the deviation in quadrature, in optical density.
        own_vectors: Unmix by vectors estimated from the image, which reduces the influence of the
            dye; else by the published ones.
    Returns:
        (H, W, 2) float32 with mean 0 and deviation 1, approximately.
    Source: divisive normalisation (Pinto, Cox and DiCarlo 2008), of stains (Ruifrok and Johnston
        2001, Macenko et al. 2009) instead of grey values.
    """
    vectors = estimate_stains(image[::_THIN, ::_THIN]).matrix if own_vectors else _PUBLISHED
    stains = optical_density(image) @ np.linalg.pinv(vectors).astype(np.float32)
    centred = stains - _local_mean(stains, sigma_px)
    deviation = np.sqrt(_local_mean(centred * centred, sigma_px) + np.float32(floor_od**2))
    return np.asarray(centred / deviation, np.float32)


def _local_mean(channels: ArrayF32, sigma_px: float) -> ArrayF32:
    """Gaussian mean of (H, W, C) around each pixel, computed at a lower resolution."""
    height, width = channels.shape[:2]
    size = (max(1, round(width / _SHRINK)), max(1, round(height / _SHRINK)))
    small = cv2.resize(channels, size, interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(small, (0, 0), sigma_px / _SHRINK, borderType=cv2.BORDER_REFLECT)
    return np.asarray(cv2.resize(smooth, (width, height)), np.float32)
