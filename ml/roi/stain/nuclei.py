"""Nucleus mask without a network: dark blobs of haematoxylin of the size of a nucleus.

For estimating the colour of nuclei. No instance segmentation: touching nuclei are one component of
the mask, but have separate centres.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.errors import BadInputError, ShapeError
from ml.types import ArrayBool, ArrayF32, ArrayF64

RADII_UM = (2.0, 2.8, 4.0, 5.6)
"""Radii of nuclei, from lymphocytes to large carcinoma nuclei."""
_AREA_UM2 = (8.0, 600.0)  # a cut lymphocyte to a giant cell
_MIN_CONTRAST = 0.08
"""Smallest contrast of a nucleus to its surroundings, in optical density."""
MAX_MPP = 2.0
"""Largest pixel size at which nuclei are visible."""
_SURROUND_UM = 24.0  # twice a large nucleus
_MIN_SOLIDITY = 0.45  # share of the bounding box; lower for debris and fibres


@dataclass(frozen=True, slots=True)
class NucleusMask:
    """Nuclei of one field.

    Attributes:
        mask: (H, W) bool, inside a nucleus.
        centre_px: (N, 2) float64, x right, y down, centres of nuclei.
        radius_um: (N,) float64, scale of the strongest response.
    """

    mask: ArrayBool
    centre_px: ArrayF64
    radius_um: ArrayF64

    def __len__(self) -> int:
        return int(self.centre_px.shape[0])


def nucleus_mask(haematoxylin: ArrayF32, *, mpp: float) -> NucleusMask:
    """Find nuclei in the haematoxylin channel of a field.

    A pixel is inside a nucleus if it is darker than its surroundings by a threshold computed from
    the field, and inside a blob of the size of a nucleus (Laplacian of Gaussian).

    Args:
        haematoxylin: (H, W) float32 concentration, in optical density.
        mpp: Microns per pixel, at most 2.
    Returns:
        NucleusMask: Empty without nuclei.
    Raises:
        ShapeError: Another shape or type.
        BadInputError: ``mpp`` is not in (0, 2].
    Source: Lindeberg 1998 (scale-normalised Laplacian), Otsu 1979; with other thresholds.
    """
    if haematoxylin.ndim != 2 or haematoxylin.dtype != np.float32:
        raise ShapeError(
            "haematoxylin",
            expected="(H, W) float32",
            actual=f"{haematoxylin.shape} {haematoxylin.dtype}",
        )
    if not 0 < mpp <= MAX_MPP:
        raise BadInputError(
            f"mpp: expected more than 0 and at most {MAX_MPP:g} to see nuclei, got {mpp}"
        )
    blob, scale = _blobs(haematoxylin, mpp)
    smooth = cv2.GaussianBlur(haematoxylin, (0, 0), max(0.5, 0.7 / mpp))
    side = 2 * round(_SURROUND_UM / mpp) + 1
    contrast = smooth - cv2.blur(smooth, (side, side), borderType=cv2.BORDER_REFLECT)
    threshold = _threshold(contrast, blob)
    inside = ((contrast > threshold) & (blob > 0.25 * threshold)).astype(np.uint8)
    return _select_nuclei(inside, blob, scale, mpp, threshold)


def _blobs(channel: ArrayF32, mpp: float) -> tuple[ArrayF32, ArrayF32]:
    """Strongest scale-normalised response of each pixel, and its radius in microns."""
    best = np.full(channel.shape, -np.inf, np.float32)
    scale = np.zeros(channel.shape, np.float32)
    for radius_um in RADII_UM:
        sigma = radius_um / mpp / np.sqrt(2)
        smooth = cv2.GaussianBlur(channel, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
        response = -(sigma**2) * cv2.Laplacian(smooth, cv2.CV_32F, ksize=1)
        higher = response > best
        best[higher], scale[higher] = response[higher], radius_um
    return best, scale


def _threshold(contrast: ArrayF32, blob: ArrayF32) -> float:
    """Otsu's threshold over pixels with contrast, at least ``_MIN_CONTRAST``."""
    values = contrast[(contrast > 0) & (blob > 0)]
    if values.size < 16:
        return _MIN_CONTRAST
    top = float(np.percentile(values, 99.5)) + 1e-6
    scaled = np.clip(values / top * 255, 0, 255).astype(np.uint8)
    level, _ = cv2.threshold(scaled[None], 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    return float(max(_MIN_CONTRAST, 0.8 * level / 255 * top))


def _select_nuclei(
    inside: np.ndarray, blob: ArrayF32, scale: ArrayF32, mpp: float, threshold: float
) -> NucleusMask:
    """Select components by size and solidity, and find the centres inside them."""
    if mpp <= 0.6:
        inside = np.asarray(cv2.morphologyEx(inside, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(inside, connectivity=4)
    area = stats[:, cv2.CC_STAT_AREA] * mpp**2
    fill = stats[:, cv2.CC_STAT_AREA] / np.maximum(
        1, stats[:, cv2.CC_STAT_WIDTH] * stats[:, cv2.CC_STAT_HEIGHT]
    )
    small, large = _AREA_UM2
    is_nucleus = (area >= small) & (area <= large) & (fill >= _MIN_SOLIDITY)
    is_nucleus[0] = False
    mask: ArrayBool = is_nucleus[labels]
    window = 2 * max(1, round(RADII_UM[0] / mpp)) + 1
    peak = cv2.dilate(blob, np.ones((window, window), np.uint8)) <= blob
    rows, columns = np.nonzero(peak & mask & (blob > 0.25 * threshold))
    centres = np.stack([columns, rows], axis=1).astype(np.float64)
    return NucleusMask(mask, centres, scale[rows, columns].astype(np.float64))
