"""Conversion of images of any bit depth to 8 bits and to grey."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import ShapeError
from ml.types import ImageU8

MIN_SIDE_PX = 16
"""Smallest side of an image."""

LOW_PERCENT, HIGH_PERCENT = 0.1, 99.9
"""Percentiles that are mapped to black and white, robust to hot and dead pixels."""

STRIP_VALUES = 4_000_000
"""Values converted to float at a time: 16 MB."""


def to_u8(image: npt.NDArray[Any], *, name: str = "image") -> ImageU8:
    """Convert integers, booleans and floats to 8 bits.

    16-bit and wider integers, and floats, are stretched between their 0.1 and 99.9 percentiles, as
    scopes with 12 bits use 16-bit files. Of large images the percentiles are computed from every
    k-th row and column, and the conversion is done in strips to bound memory.

    Args:
        image: (H, W) or (H, W, C), C in 1, 3, 4.
        name: Name of the image in errors.
    Returns:
        uint8 array of the same shape.
    Raises:
        ShapeError: Another shape or type, a side below 16 px, or values that are not finite.
    """
    array = np.asarray(image)
    _check_shape(array, name)
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise ShapeError(name, expected="integer or float pixels", actual=str(array.dtype))
    strips = _strips(array)
    if not all(np.isfinite(array[rows].astype(np.float32)).all() for rows in strips):
        raise ShapeError(name, expected="finite pixel values", actual="NaN or infinity")
    step = int(np.ceil(np.sqrt(array.size / STRIP_VALUES)))
    low, high = np.percentile(array[::step, ::step].astype(np.float32), (LOW_PERCENT, HIGH_PERCENT))
    span = max(float(high - low), 1e-6)
    stretched = np.empty(array.shape, np.uint8)
    for rows in strips:
        values = (array[rows].astype(np.float32) - low) * (255.0 / span)
        stretched[rows] = np.clip(values, 0, 255)
    return stretched


def _strips(array: npt.NDArray[Any]) -> list[slice]:
    """Slices of rows of at most ``STRIP_VALUES`` values, at least one row each."""
    rows = max(1, STRIP_VALUES * array.shape[0] // max(array.size, 1))
    return [slice(start, start + rows) for start in range(0, array.shape[0], rows)]


def to_grey(image: npt.NDArray[Any], *, name: str = "image") -> ImageU8:
    """Convert a grey, RGB or RGBA image of any bit depth to grey.

    Args:
        image: (H, W), (H, W, 1), (H, W, 3) RGB or (H, W, 4) RGBA (alpha is ignored).
    Returns:
        (H, W) uint8, contiguous.
    Raises:
        ShapeError: See ``to_u8``.
    """
    pixels = to_u8(image, name=name)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim == 3:
        pixels = cv2.cvtColor(np.ascontiguousarray(pixels[:, :, :3]), cv2.COLOR_RGB2GRAY)  # type: ignore[assignment]
    return np.ascontiguousarray(pixels)


def equalise(grey: ImageU8, *, clip_limit: float = 2.0, grid: int = 8) -> ImageU8:
    """Contrast-limited adaptive histogram equalisation (CLAHE) of an (H, W) uint8 image."""
    clahe = cv2.createCLAHE(clipLimit=clip_limit, tileGridSize=(grid, grid))
    return np.asarray(clahe.apply(grey), dtype=np.uint8)


def _check_shape(array: npt.NDArray[Any], name: str) -> None:
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))
    if not is_image:
        raise ShapeError(name, expected="(H, W) or (H, W, 1|3|4)", actual=str(array.shape))
    if min(array.shape[:2]) < MIN_SIDE_PX:
        raise ShapeError(
            name,
            expected=f"sides of at least {MIN_SIDE_PX} px",
            actual=f"{array.shape[1]} x {array.shape[0]} px",
        )
