"""Stills for training: read, brought to one size, and where their recorder wrote into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError, CorruptFileError
from ml.imaging.slides.stills import decode_still
from ml.types import ArrayBool, ImageU8

Area = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle, as shares of the image's sides."""

CLEAR_WINDOW: Area = (0.18, 0.02, 0.76, 0.8)
"""Of the laparoscopy stills: clear of text, logo and rim."""


def read_still(path: Path) -> ImageU8:
    """(H, W, 3) uint8 RGB of an image file.

    Raises:
        BadInputError: it is not an image.
    """
    try:
        return decode_still(path)
    except CorruptFileError as error:
        raise BadInputError(f"{path.name}: expected an image; {error}") from error


def resized(image: ImageU8, *, long_side_px: int, least_px: int = 1) -> ImageU8:
    """An image whose longer side is ``long_side_px``, and no side below ``least_px``."""
    scale = long_side_px / max(image.shape[:2])
    size = (
        max(round(image.shape[1] * scale), least_px),
        max(round(image.shape[0] * scale), least_px),
    )
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, size, interpolation=method), np.uint8)


def areas_mask(shape: tuple[int, ...], areas: Sequence[Area]) -> ArrayBool:
    """(H, W) bool, True in the areas, every pixel that they touch included."""
    mask = np.zeros(shape[:2], np.bool_)
    for left, top, right, bottom in areas:
        rows = slice(int(top * shape[0]), int(np.ceil(bottom * shape[0])))
        mask[rows, int(left * shape[1]) : int(np.ceil(right * shape[1]))] = True
    return mask
