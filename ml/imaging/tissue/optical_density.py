"""Optical density of stained sections: the negative logarithm of transmitted light."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF32, ImageU8

WHITE = 245.0
"""Default grey value of glass, if the image has no background."""
White = tuple[float, float, float]


def optical_density(image: ImageU8, white: White = (WHITE, WHITE, WHITE)) -> ArrayF32:
    """Optical density of each channel, base 10, at least 0.

    Args:
        image: (..., 3) uint8 RGB.
        white: RGB of empty glass.
    Returns:
        (..., 3) float32.
    Raises:
        ShapeError: Another shape or type.
    """
    if image.dtype != np.uint8 or image.shape[-1] != 3:
        raise ShapeError("image", expected="(..., 3) uint8", actual=f"{image.shape} {image.dtype}")
    tables = [_density_table(float(level)) for level in white]
    if white[0] == white[1] == white[2]:
        return np.asarray(tables[0][image])
    return np.stack([table[image[..., i]] for i, table in enumerate(tables)], axis=-1)


@lru_cache(maxsize=64)
def _density_table(white: float) -> ArrayF32:
    density = -np.log10((np.arange(256, dtype=np.float64) + 1.0) / (white + 1.0))
    return np.maximum(density, 0.0).astype(np.float32)
