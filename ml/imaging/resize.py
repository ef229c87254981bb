"""Reduce images by averaging."""

from __future__ import annotations

import cv2
import numpy as np

from ml.types import ImageU8


def reduce_to(rgb: ImageU8, long_side_px: int) -> ImageU8:
    """Reduce an image until its longer side fits; a smaller image is returned as it is.

    Args:
        rgb: (H, W, 3) uint8, not empty.
    Returns:
        (h, w, 3) uint8 with max(h, w) <= long_side_px, each pixel the mean of those it covers.
    """
    scale = long_side_px / max(rgb.shape[:2])
    if scale >= 1:
        return rgb
    size = (max(1, round(rgb.shape[1] * scale)), max(1, round(rgb.shape[0] * scale)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8)
