"""A light nucleus mask: dark blobs of haematoxylin of a nucleus' size, without a network.

Good enough to say what colour nuclei have on a slide; no instance segmentation: touching nuclei
stay one piece of the mask, though each has its own centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.errors import BadInputError, ShapeError
from ml.types import ArrayBool, ArrayF32, ArrayF64

RADII_UM = (2.0, 2.8, 4.0, 5.6)
"""Radii looked for: lymphocytes to large carcinoma nuclei."""
_AREA_UM2 = (8.0, 600.0)  # a cut lymphocyte to a giant cell
_MIN_CONTRAST = 0.08
"""Optical density by which a nucleus must stand out from what surrounds it."""
MAX_MPP = 2.0
"""Coarser pixels do not show nuclei."""
_SURROUND_UM = 24.0  # twice a large nucleus
_MIN_SOLIDITY = 0.45  # share of the bounding box; less is debris or a fibre


@dataclass(frozen=True, slots=True)
class NucleusMask:
    """Nuclei of one field.

    Attributes:
        mask: (H, W) bool, inside a nucleus.
        centre_px: (N, 2) float64, x right, y down, one a nucleus.
        radius_um: (N,) float64, the scale at which it stood out most.
    """

    mask: ArrayBool
    centre_px: ArrayF64
    radius_um: ArrayF64

    def __len__(self) -> int:
        return int(self.centre_px.shape[0])


def nucleus_mask(haematoxylin: ArrayF32, *, mpp: float) -> NucleusMask:
    """Find nuclei on the haematoxylin channel of one field.

    A pixel is inside a nucleus if it is darker than its surroundings by a threshold found on the
    field itself and lies in a blob that a Laplacian of Gaussian of a nucleus' size answers to.

    Args:
        haematoxylin: (H, W) float32, optical density that haematoxylin absorbs (concentration).
        mpp: microns per pixel, at most 2: coarser pixels do not show nuclei.
    Returns:
        NucleusMask: empty on a field without nuclei.
    Raises:
        ShapeError: another array.
        BadInputError: ``mpp`` is not in (0, 2].
    Source: Lindeberg 1998 (scale-normalised Laplacian), Otsu 1979; thresholds of our own.
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
    return _pieces(inside, blob, scale, mpp, threshold)


def _blobs(channel: ArrayF32, mpp: float) -> tuple[ArrayF32, ArrayF32]:
    """Strongest scale-normalised answer of each pixel, and the radius in microns that gave it."""
    best = np.full(channel.shape, -np.inf, np.float32)
    scale = np.zeros(channel.shape, np.float32)
    for radius_um in RADII_UM:
        sigma = radius_um / mpp / np.sqrt(2)
        smooth = cv2.GaussianBlur(channel, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
        answer = -(sigma**2) * cv2.Laplacian(smooth, cv2.CV_32F, ksize=1)
        higher = answer > best
        best[higher], scale[higher] = answer[higher], radius_um
    return best, scale


def _threshold(contrast: ArrayF32, blob: ArrayF32) -> float:
    """Otsu's threshold over what stands out at all, never below the least contrast."""
    values = contrast[(contrast > 0) & (blob > 0)]
    if values.size < 16:
        return _MIN_CONTRAST
    top = float(np.percentile(values, 99.5)) + 1e-6
    scaled = np.clip(values / top * 255, 0, 255).astype(np.uint8)
    found, _ = cv2.threshold(scaled[None], 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    return float(max(_MIN_CONTRAST, 0.8 * found / 255 * top))


def _pieces(
    inside: np.ndarray, blob: ArrayF32, scale: ArrayF32, mpp: float, threshold: float
) -> NucleusMask:
    """Keep pieces of a nucleus' size that fill their box; find the centres inside them."""
    if mpp <= 0.6:
        inside = np.asarray(cv2.morphologyEx(inside, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(inside, connectivity=4)
    area = stats[:, cv2.CC_STAT_AREA] * mpp**2
    fill = stats[:, cv2.CC_STAT_AREA] / np.maximum(
        1, stats[:, cv2.CC_STAT_WIDTH] * stats[:, cv2.CC_STAT_HEIGHT]
    )
    small, large = _AREA_UM2
    kept = (area >= small) & (area <= large) & (fill >= _MIN_SOLIDITY)
    kept[0] = False
    mask: ArrayBool = kept[labels]
    reach = 2 * max(1, round(RADII_UM[0] / mpp)) + 1
    peak = cv2.dilate(blob, np.ones((reach, reach), np.uint8)) <= blob
    rows, columns = np.nonzero(peak & mask & (blob > 0.25 * threshold))
    centres = np.stack([columns, rows], axis=1).astype(np.float64)
    return NucleusMask(mask, centres, scale[rows, columns].astype(np.float64))
