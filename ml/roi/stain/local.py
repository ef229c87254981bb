"""Stains against their surroundings: what is left when a slide's colour and strength are gone."""

from __future__ import annotations

import cv2
import numpy as np

from ml.roi.stain.deconvolution import RUIFROK_HE, estimate_stains, optical_density
from ml.types import ArrayF32, ImageU8

_PUBLISHED = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
_THIN = 2
"""Every second pixel of every second row is enough for two vectors."""
_SHRINK = 4
"""The surroundings are so smooth that a quarter of the resolution holds them."""


def local_contrast(
    image: ImageU8, *, sigma_px: float = 30.0, floor_od: float = 0.05, own_vectors: bool = False
) -> ArrayF32:
    """Haematoxylin and eosin of each pixel, less their local mean, over their local deviation.

    Twice the stain gives the same result wherever the deviation is well above ``floor_od``.

    Args:
        image: (H, W, 3) uint8 RGB, about 1 um per pixel.
        sigma_px: deviation of the Gaussian that says what is local.
        floor_od: added to the deviation (in squares), in optical density.
        own_vectors: unmix by the vectors estimated from this image, where they can be trusted:
            then the dye of a laboratory matters less, too; else by the published ones.
    Returns:
        (H, W, 2) float32: about 0 on average, deviations of about 1.
    Source: divisive normalisation (Pinto, Cox and DiCarlo 2008), of stains (Ruifrok and Johnston
        2001, Macenko et al. 2009) instead of grey values.
    """
    vectors = estimate_stains(image[::_THIN, ::_THIN]).matrix if own_vectors else _PUBLISHED
    stains = optical_density(image) @ np.linalg.pinv(vectors).astype(np.float32)
    away = stains - _surroundings(stains, sigma_px)
    deviation = np.sqrt(_surroundings(away * away, sigma_px) + np.float32(floor_od**2))
    return np.asarray(away / deviation, np.float32)


def _surroundings(channels: ArrayF32, sigma_px: float) -> ArrayF32:
    """Gaussian mean of (H, W, C) around each pixel, taken at a lower resolution."""
    height, width = channels.shape[:2]
    size = (max(1, round(width / _SHRINK)), max(1, round(height / _SHRINK)))
    small = cv2.resize(channels, size, interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(small, (0, 0), sigma_px / _SHRINK, borderType=cv2.BORDER_REFLECT)
    return np.asarray(cv2.resize(smooth, (width, height)), np.float32)
