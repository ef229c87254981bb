"""Stills of trainings and evaluations: reading, resizing, areas with burnt-in text."""

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
"""Area of the laparoscopy stills without text, logo and rim."""


def read_still(path: Path) -> ImageU8:
    """(H, W, 3) uint8 RGB of an image file.

    Raises:
        BadInputError: it is not an image.
    """
    try:
        return decode_still(path)
    except CorruptFileError as error:
        raise BadInputError(f"{path.name}: expected an image; {error}") from error


def resized(image: ImageU8, *, long_side_px: int, min_px: int = 1) -> ImageU8:
    """Resize an image to a longer side of ``long_side_px``, with no side below ``min_px``."""
    scale = long_side_px / max(image.shape[:2])
    size = (
        max(round(image.shape[1] * scale), min_px),
        max(round(image.shape[0] * scale), min_px),
    )
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, size, interpolation=method), np.uint8)


def areas_mask(shape: tuple[int, ...], areas: Sequence[Area]) -> ArrayBool:
    """(H, W) bool mask of the areas, with every pixel that they touch."""
    mask = np.zeros(shape[:2], np.bool_)
    for left, top, right, bottom in areas:
        rows = slice(int(top * shape[0]), int(np.ceil(bottom * shape[0])))
        mask[rows, int(left * shape[1]) : int(np.ceil(right * shape[1]))] = True
    return mask
