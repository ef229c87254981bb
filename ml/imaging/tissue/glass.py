"""Tissue and glass: tinted glass is as dark as pale tissue, but has no structure.

Mounting medium and a stain that was not washed off tint glass up to an optical density of about
0.18, which is that of pale stroma. Tissue differs from it by its texture.
"""

from __future__ import annotations

import cv2
import numpy as np

from ml.imaging.tissue.optical_density import WHITE, White, optical_density
from ml.types import ArrayBool, ArrayF32, ImageU8

AVERAGED_PX = 4
"""Side of the squares of pixels that are averaged before structure is measured: noise of the camera
and of JPEG is smaller, nuclei and fibres remain."""
TISSUE_OD = 0.06
"""Smallest optical density of tissue in the darkest channel; clear glass has less."""
MAX_HAZE_OD = 0.2
"""Largest optical density of tinted glass, in its darkest channel."""
MIN_STRUCTURE_OD = 0.009
"""Smallest local standard deviation of the optical density of tissue."""
_WINDOW_PX = 7  # of the local standard deviation
_GAP_PX = 15  # smooth parts of tissue that are narrower count as tissue
_GLASS_SHARE, _GLASS_MIN, _GLASS_TINT = 0.02, 170.0, 60.0
"""Share of the brightest pixels, lower bound of their darkest channel, upper bound of the tint."""
HAZE_REACH_PX = AVERAGED_PX * 2 * (_WINDOW_PX // 2 + _GAP_PX // 2)
"""Distance from which pixels have an influence on ``pixel_haze``."""


def haze_mask(od: ArrayF32) -> ArrayBool:
    """Mask (H, W) bool of clear or tinted glass: pale, and without structure in any channel.

    Args:
        od: (H, W, 3) float32, optical density of averaged pixels, see ``AVERAGED_PX``; or of a
            thumbnail.
    """
    window = (_WINDOW_PX, _WINDOW_PX)
    residual = od - cv2.blur(od, window)
    deviation = np.sqrt(np.maximum(cv2.blur(residual * residual, window), 0.0)).max(axis=-1)
    solid = (deviation >= MIN_STRUCTURE_OD) | (od.max(axis=-1) >= MAX_HAZE_OD)
    gap = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (_GAP_PX, _GAP_PX))
    return np.asarray(cv2.morphologyEx(solid.astype(np.uint8), cv2.MORPH_CLOSE, gap) == 0)


def averaged_haze(image: ImageU8, white: White = (WHITE, WHITE, WHITE)) -> ArrayBool:
    """``haze_mask`` of an image's averages, (ceil(H / 4), ceil(W / 4)) bool.

    Args:
        image: (H, W, 3) uint8 RGB.
        white: RGB of empty glass.
    """
    height, width = image.shape[:2]
    size = (-(-width // AVERAGED_PX), -(-height // AVERAGED_PX))
    averages = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return haze_mask(optical_density(averages, white))


def pixel_haze(image: ImageU8, white: White = (WHITE, WHITE, WHITE)) -> ArrayBool:
    """``averaged_haze`` for each pixel of an image (H, W, 3) uint8: (H, W) bool."""
    small = averaged_haze(image, white).astype(np.uint8)
    size = (image.shape[1], image.shape[0])
    return np.asarray(cv2.resize(small, size, interpolation=cv2.INTER_NEAREST), bool)


def glass_colour(thumbnail: ImageU8) -> White:
    """RGB of empty glass: median of the brightest pixels; ``WHITE`` if coloured or dim."""
    smooth = cv2.blur(thumbnail, (3, 3)).reshape(-1, 3)
    darkest = smooth.min(axis=1)
    bright = smooth[darkest >= np.quantile(darkest, 1 - _GLASS_SHARE)]
    red, green, blue = (float(v) for v in np.median(bright, axis=0))
    if (
        min(red, green, blue) < _GLASS_MIN
        or max(red, green, blue) - min(red, green, blue) > _GLASS_TINT
    ):
        return (WHITE, WHITE, WHITE)
    return (red, green, blue)


def tissue_mask(image: ImageU8, white: White) -> ArrayBool:
    """Mask (H, W) bool of the tissue of a thumbnail.

    Tissue is darker than glass in some channel. Tinted glass and specks of dust are excluded.
    """
    od = optical_density(image, white)
    tissue = (od.max(axis=-1) > TISSUE_OD) & ~haze_mask(od)
    opened = cv2.medianBlur(tissue.astype(np.uint8), 5) if min(image.shape[:2]) > 5 else tissue
    return np.asarray(opened, bool)
