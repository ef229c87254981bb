"""A frame prepared for direct alignment: band-passed levels, and the px that take part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

LEVELS = (0.25, 0.5)
"""Sizes, coarse to fine, as shares of the working image."""

FINE_SIGMA, GROUND_SIGMA = 1.0, 4.0
"""Band of one level, in its px: finer is noise, coarser is the lamp's shading."""

RIM_PX = 3
"""Margin of a level, px: the band-pass is one-sided along the rim."""

MAX_POINTS = 6_000
"""Only the px of the steepest grey take part: flat ones carry no information and cost as much."""


@dataclass(frozen=True)
class DirectView:
    """A frame prepared for direct alignment: per level the image and where it may be trusted."""

    images: tuple[ArrayF32, ...]
    masks: tuple[ArrayBool, ...]

    @cached_property
    def levels(self) -> tuple[LevelView, ...]:
        """Levels prepared for alignment, computed once a frame."""
        return tuple(LevelView.of(i, m) for i, m in zip(self.images, self.masks, strict=True))


@dataclass(frozen=True, slots=True)
class LevelView:
    """One level of a view.

    Attributes:
        image: (h, w) float32
        valid: (h, w) uint8, non-zero where it may be trusted.
        unit: (3, 3), unit coordinates (middle of the image, radius 1) to px.
        points: (3, N) float64, homogeneous unit coordinates of the px that take part.
        value: (N,) float32, the image there
        gradient: (2, N) float32, its slope, 1 / px.
    """

    image: ArrayF32
    valid: ImageU8
    unit: ArrayF64
    points: ArrayF64
    value: ArrayF32
    gradient: ArrayF32

    @classmethod
    def of(cls, image: ArrayF32, mask: ArrayBool) -> LevelView:
        """Prepare a level. image: (h, w) float32; mask: (h, w), trusted px."""
        gradient_x = cv2.Sobel(image, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
        gradient_y = cv2.Sobel(image, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
        rows, columns = _steepest_px(gradient_x**2 + gradient_y**2, mask)
        unit = unit_frame((image.shape[0], image.shape[1]))
        px = np.stack([columns, rows, np.ones(len(rows))]).astype(np.float64)
        return cls(
            image=image,
            valid=mask.astype(np.uint8),
            unit=unit,
            points=np.linalg.inv(unit) @ px,
            value=image[rows, columns],
            gradient=np.stack([gradient_x[rows, columns], gradient_y[rows, columns]]),
        )


def direct_view(grey: ArrayF32, mask: ArrayBool) -> DirectView:
    """Prepare a frame. grey: (h, w) float32 without the fixed pattern; mask: (h, w), trusted px."""
    images, masks = [], []
    for share in LEVELS:
        size = (max(8, round(grey.shape[1] * share)), max(8, round(grey.shape[0] * share)))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.float32)
        inside = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.99
        images.append(_normalise(small, inside))
        # along the rim the band is one-sided
        rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
        masks.append(cv2.erode(inside.astype(np.uint8), rim, borderValue=1) > 0)
    return DirectView(tuple(images), tuple(masks))


def unit_frame(shape: tuple[int, int]) -> ArrayF64:
    """(3, 3): unit coordinates (middle of the image, radius 1) to px of an image of that shape."""
    radius = 0.5 * max(shape)
    return np.array([[radius, 0, (shape[1] - 1) / 2], [0, radius, (shape[0] - 1) / 2], [0, 0, 1.0]])


def _steepest_px(energy: ArrayF32, mask: ArrayBool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of at most ``MAX_POINTS`` px of the mask, those of the steepest grey."""
    inside = np.flatnonzero(mask)
    if len(inside) > MAX_POINTS:
        strength = energy.ravel()[inside]
        chosen = np.argpartition(strength, len(inside) - MAX_POINTS)[-MAX_POINTS:]
        inside = np.sort(inside[chosen])
    return np.divmod(inside, mask.shape[1])


def _normalise(image: ArrayF32, inside: ArrayBool) -> ArrayF32:
    """Band-passed, divided by the local contrast, zero outside."""
    mass = inside.astype(np.float32)

    def local_mean(values: ArrayF32, sigma: float) -> ArrayF32:
        blurred = cv2.GaussianBlur(values * mass, (0, 0), sigma)
        return np.asarray(blurred / np.maximum(cv2.GaussianBlur(mass, (0, 0), sigma), 1e-3))

    band = local_mean(image, FINE_SIGMA) - local_mean(image, GROUND_SIGMA)
    contrast = np.sqrt(local_mean(band * band, 3 * GROUND_SIGMA))
    usual = float(np.median(contrast[inside])) if inside.any() else 1.0
    return np.asarray(band / (contrast + 0.5 * max(usual, 1e-3)) * mass, np.float32)
