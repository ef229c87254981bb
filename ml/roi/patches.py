"""Patches at the magnification of the encoder, from an image in memory or a slide."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from ml.errors import ShapeError
from ml.imaging.slides.patches import BATCH, Corner, PatchSource, SlidePatches, cut_patch
from ml.types import ArrayF64, ImageU8

__all__ = [
    "BATCH",
    "Corner",
    "ImagePatches",
    "PatchSource",
    "SlidePatches",
    "checked_image",
    "cut_patch",
    "isotropic_mpp",
    "patch_corners",
]


class ImagePatches:
    """Patches of an image (H, W, 3) uint8 in memory."""

    def __init__(self, image: ImageU8, *, downsample: float) -> None:
        height, width = image.shape[:2]
        size = (max(1, round(width / downsample)), max(1, round(height / downsample)))
        scaled = Image.fromarray(image)
        if size != (width, height):
            scaled = scaled.resize(size, Image.Resampling.HAMMING)
        self._pixels = np.asarray(scaled)

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``."""
        return cut_patch(self._pixels, corner_px, patch_px)


def patch_corners(centre_px: ArrayF64, patch_px: int) -> list[Corner]:
    """Integer corners of patches with centres (N, 2), clipped to 0."""
    corners = np.maximum(np.floor(centre_px - patch_px / 2 + 0.5), 0).astype(int)
    return [(int(x), int(y)) for x, y in corners]


def checked_image(image: ImageU8) -> ImageU8:
    """Convert a grey or RGB image to (H, W, 3) uint8.

    Raises:
        ShapeError: Another shape or type, or an empty image.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or 0 in image.shape:
        actual = getattr(image, "dtype", type(image).__name__)
        raise ShapeError("image", expected="(H, W, 3) uint8", actual=f"{actual}, or an empty image")
    if image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3:
        raise ShapeError("image", expected="(H, W, 3) uint8", actual=str(image.shape))
    return image


def isotropic_mpp(mpp_x: float | None, mpp_y: float | None) -> float | None:
    """Geometric mean of the microns per pixel in x and y, or the known one of them."""
    if mpp_x and mpp_y:
        return math.sqrt(mpp_x * mpp_y)
    return mpp_x or mpp_y
