"""An image as seen from one point: what lies in each direction, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

HAEMATOXYLIN, LIGHTNESS = "haematoxylin", "lightness"
SIGNALS = (HAEMATOXYLIN, LIGHTNESS)
_REACH = 4.0  # deviations: a Gaussian is below .0004 of its top there
_OD_VECTORS = np.array([[0.650, 0.704, 0.286], [0.072, 0.990, 0.105], [0.268, 0.570, 0.776]])
"""Haematoxylin, eosin, and a third for what is neither: Ruifrok and Johnston 2001, table 1."""
_WHITE = 245.0  # transmitted light of empty glass
_DARKEST = 1.0  # a grey value, so that black has an optical density
_LIGHT = 255.0  # the lightest value of 8 bits


def signal_of(image: ImageU8, signal: str, sigma_px: float) -> ArrayF32:
    """(H, W) float32: how dark each place and its surroundings are, in the stain or as a whole."""
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
    """Places around a centre.

    Attributes:
        unit: (A, 2) float64, one step in each direction. radius: (R,) float64, steps.
        drop: (A, R) float32, how much darker it is before a place than behind it.
        is_seen: (A, R) bool, within the image.
    """

    centre: tuple[float, float]
    unit: ArrayF64
    radius: ArrayF64
    drop: ArrayF32
    is_seen: ArrayBool

    def points(self, radius: ArrayF64) -> ArrayF64:
        """(A, 2) float64: one point in each direction."""
        return np.asarray(self.centre) + self.unit * radius[:, None]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where rays begin, and the (2, 2) ellipse that they reach after one step."""

    centre: tuple[float, float]
    ellipse: ArrayF64


def cast_rays(
    dark: ArrayF32, stand: Stand, *, directions: int, radius: ArrayF64, sigma: float
) -> Rays:
    """Sample (H, W) darkness at ``radius`` (R,) along rays; ``sigma`` smooths along, in places."""
    angle = np.arange(directions) * (2 * np.pi / directions)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ stand.ellipse
    xy = np.asarray(stand.centre) + unit[:, None] * radius[None, :, None]
    x, y = xy[..., 0].astype(np.float32), xy[..., 1].astype(np.float32)
    seen = np.asarray(
        cv2.remap(dark, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32
    )
    drop = -_slope(seen, sigma)
    height, width = dark.shape
    is_seen = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    return Rays(stand.centre, unit, radius, np.where(is_seen, drop, 0).astype(np.float32), is_seen)


def _slope(rows: ArrayF32, sigma: float) -> ArrayF32:
    """(H, W) derivative along each row, smoothed by a Gaussian of ``sigma`` places."""
    reach = np.arange(-round(_REACH * sigma), round(_REACH * sigma) + 1)
    bell = np.exp(-0.5 * (reach / sigma) ** 2)
    kernel = reach / sigma**2 * bell / bell.sum()
    return np.asarray(
        cv2.sepFilter2D(
            rows,
            cv2.CV_32F,
            kernel.astype(np.float32),
            np.ones(1, np.float32),
            borderType=cv2.BORDER_REFLECT,
        )
    )
