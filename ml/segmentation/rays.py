"""Image sampled along rays from one point."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

HAEMATOXYLIN, LIGHTNESS = "haematoxylin", "lightness"
SIGNALS = (HAEMATOXYLIN, LIGHTNESS)
_KERNEL_SIGMAS = 4.0  # half width of the kernel: a Gaussian is below .0004 of its maximum there
_OD_VECTORS = np.array([[0.650, 0.704, 0.286], [0.072, 0.990, 0.105], [0.268, 0.570, 0.776]])
"""Haematoxylin, eosin and DAB: Ruifrok and Johnston 2001, table 1."""
_WHITE = 245.0  # grey value of empty glass
_DARKEST = 1.0  # lower bound of grey values, so that black has a finite optical density
_LIGHT = 255.0  # maximum of 8 bits


def darkness(image: ImageU8, signal: str, sigma_px: float) -> ArrayF32:
    """Smoothed darkness of an image.

    Args:
        image: (H, W, 3) uint8 RGB.
        signal: "haematoxylin": optical density of this stain; "lightness": 1 - mean of RGB.
        sigma_px: Standard deviation of the Gaussian.
    Returns:
        (H, W) float32.
    """
    pixels = image.astype(np.float32)
    if signal == HAEMATOXYLIN:
        density = -np.log10(np.maximum(pixels, _DARKEST) / _WHITE)
        vectors = _OD_VECTORS / np.linalg.norm(_OD_VECTORS, axis=1, keepdims=True)
        dark = density @ np.linalg.inv(vectors)[:, 0].astype(np.float32)
    else:
        dark = 1 - pixels.mean(axis=2) / _LIGHT
    return cv2.GaussianBlur(dark, (0, 0), sigma_px).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Rays:
    """Darkness gradient sampled along rays from a centre.

    Attributes:
        unit: (A, 2) float64, unit step in each direction.
        radius: (R,) float64, sampled radii in unit steps.
        drop: (A, R) float32, decrease of darkness outwards; 0 outside the image.
        is_inside: (A, R) bool, samples inside the image.
    """

    centre: tuple[float, float]
    unit: ArrayF64
    radius: ArrayF64
    drop: ArrayF32
    is_inside: ArrayBool

    def points(self, radius: ArrayF64) -> ArrayF64:
        """Points (A, 2) float64 at a radius (A,) in each direction."""
        return np.asarray(self.centre) + self.unit * radius[:, None]


@dataclass(frozen=True, slots=True)
class RayOrigin:
    """Centre of the rays, and the (2, 2) matrix that maps unit directions to unit steps."""

    centre: tuple[float, float]
    ellipse: ArrayF64


def cast_rays(
    dark: ArrayF32, origin: RayOrigin, *, directions: int, radius: ArrayF64, sigma: float
) -> Rays:
    """Sample darkness along rays.

    Args:
        dark: (H, W) float32.
        directions: Number of rays.
        radius: (R,) float64, in unit steps.
        sigma: Standard deviation of smoothing along a ray, in samples.
    """
    angle = np.arange(directions) * (2 * np.pi / directions)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ origin.ellipse
    xy = np.asarray(origin.centre) + unit[:, None] * radius[None, :, None]
    x, y = xy[..., 0].astype(np.float32), xy[..., 1].astype(np.float32)
    sampled = np.asarray(
        cv2.remap(dark, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32
    )
    drop = -_slope(sampled, sigma)
    height, width = dark.shape
    is_inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    return Rays(
        origin.centre, unit, radius, np.where(is_inside, drop, 0).astype(np.float32), is_inside
    )


def _slope(rows: ArrayF32, sigma: float) -> ArrayF32:
    """(H, W) derivative along each row, smoothed by a Gaussian of ``sigma`` samples."""
    offset = np.arange(-round(_KERNEL_SIGMAS * sigma), round(_KERNEL_SIGMAS * sigma) + 1)
    gaussian = np.exp(-0.5 * (offset / sigma) ** 2)
    kernel = offset / sigma**2 * gaussian / gaussian.sum()
    return np.asarray(
        cv2.sepFilter2D(
            rows,
            cv2.CV_32F,
            kernel.astype(np.float32),
            np.ones(1, np.float32),
            borderType=cv2.BORDER_REFLECT,
        )
    )
