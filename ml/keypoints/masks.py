"""Usable area of an endoscopic image: inside the field of view, without highlights."""

from __future__ import annotations

import cv2
import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayBool, ImageU8

DARK_LEVEL = 14
"""Largest grey level of the dark surround of a scope, including noise."""

DARK_SHARE, NOISE_LEVELS = 0.1, 4
"""Largest grey level of the surround in a dark image: relative to the brightest tissue, and above
the darkest pixels."""

MIN_BRIGHT_SHARE = 0.05
"""Smallest share of a bright region that is a field of view; else the image is dark."""

SPOT_PX = 21
"""Largest size of highlights in an image of ``SPOT_SIDE_PX``; larger structures are tissue."""

SPOT_SIDE_PX = 400
"""Approximate longer side to which images are reduced for the search of highlights."""

GRAIN_PX = 1.5
"""Sigma of the blur that removes the pattern of a fibre bundle before the opening."""

SATURATED_LEVEL = 250
"""Smallest grey level of saturated pixels, which are highlights in any surroundings."""

FULL_FIELD_SHARE = 0.98
"""Share of a bright region above which the image has no border of a scope."""


def scope_mask(grey: ImageU8, *, margin_px: int = 0, level: float = DARK_LEVEL) -> ArrayBool:
    """Find the field of view of a scope: the convex hull of the largest bright region.

    The hull includes dark tissue inside. All of the image is returned if it is bright up to its
    border, or dark.

    Args:
        grey: (H, W) uint8; of a video preferably the maximum over some frames.
        margin_px: Erosion of the mask from the rim.
        level: Largest grey level of the surround, see ``surround_level``.
    Returns:
        (H, W) bool, True inside.
    """
    height, width = grey.shape
    bright = _largest_region(cv2.medianBlur(grey, 5) > level)
    hull = np.zeros((height, width), np.uint8)
    if bright is None or bright.sum() < MIN_BRIGHT_SHARE * bright.size:
        hull[:] = 1
    else:
        outline, _ = cv2.findContours(
            bright.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
        )
        cv2.fillConvexPoly(hull, cv2.convexHull(np.concatenate(outline)), 1)
        if hull.mean() > FULL_FIELD_SHARE:
            hull[:] = 1
    if margin_px > 0 and hull.min() == 0:
        padded = cv2.copyMakeBorder(hull, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
        hull = (cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1] > margin_px).astype(
            np.uint8
        )
    return hull.astype(np.bool_)


def surround_level(grey: ImageU8) -> float:
    """Estimate the largest grey level of the surround of a scope, lower in a dark image.

    Args:
        grey: (H, W) uint8.
    Returns:
        At most ``DARK_LEVEL``.
    """
    low, high = np.percentile(cv2.medianBlur(grey, 5), (1, 99))
    return float(min(DARK_LEVEL, max(low + NOISE_LEVELS, DARK_SHARE * high)))


def specular_mask(image: ImageU8, *, rise: int = 24, grow_px: int = 3) -> ArrayBool:
    """Find highlights: saturated pixels, and small spots brighter than their surroundings.

    Args:
        image: (H, W) grey or (H, W, 3) RGB uint8; the smallest channel of RGB is used, as
            highlights are white.
        rise: Smallest contrast of a spot, in grey levels; its level is above twice that.
        grow_px: Dilation of the spots.
    Returns:
        (H, W) bool, True on highlights; all False if they cover more than half of the image.
    """
    plane = np.ascontiguousarray(image if image.ndim == 2 else _smallest_channel(image))
    factor = max(1, max(plane.shape) // SPOT_SIDE_PX)
    size = (max(1, plane.shape[1] // factor), max(1, plane.shape[0] // factor))
    smooth = cv2.GaussianBlur(plane, (0, 0), GRAIN_PX)
    coarse = cv2.resize(smooth, size, interpolation=cv2.INTER_AREA)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (SPOT_PX, SPOT_PX))
    background = cv2.resize(
        cv2.morphologyEx(coarse, cv2.MORPH_OPEN, kernel), (plane.shape[1], plane.shape[0])
    )
    spots = (smooth.astype(np.int16) - background > rise) & (smooth > 2 * rise)
    spots |= plane >= SATURATED_LEVEL
    if spots.mean() > 0.5:
        return np.zeros(plane.shape, np.bool_)
    grown = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * grow_px + 1, 2 * grow_px + 1))
    return cv2.dilate(spots.astype(np.uint8), grown).astype(np.bool_)


def _smallest_channel(image: ImageU8) -> ImageU8:
    """Minimum over channels (H, W); twenty times faster than ``min(axis=2)``."""
    red, green, blue = (image[:, :, channel] for channel in range(3))
    return np.asarray(np.minimum(np.minimum(red, green), blue), np.uint8)


def checked_mask(mask: np.ndarray | None, shape: tuple[int, int]) -> ArrayBool:
    """Convert a mask to (H, W) bool: True, or above 127, is inside; None gives True.

    Raises:
        ShapeError: Another size than the image.
    """
    if mask is None:
        return np.ones(shape, np.bool_)
    plane = np.asarray(mask)
    plane = plane[:, :, 0] if plane.ndim == 3 else plane
    if plane.shape != shape:
        raise ShapeError("mask", expected=f"{shape} as the image", actual=str(plane.shape))
    return plane.astype(np.bool_) if plane.dtype == np.bool_ else plane > 127


def _largest_region(bright: ArrayBool) -> ArrayBool | None:
    """Largest connected component (H, W) bool; None if there is none."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(bright.astype(np.uint8), None)
    if count < 2:
        return None
    best = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    return np.asarray(labels == best)
