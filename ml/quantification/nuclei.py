"""Nuclei of one tile: blobs of stain, split by a watershed.

Every step looks only as far as ``REACH_UM``: tiles that overlap by it agree on the nuclei between.
(``ml.roi.stain.nuclei`` finds some nuclei of a field to learn their colour; its threshold is that
of the whole field, and it splits nothing.)
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy import ndimage

from ml.quantification.config import QuantificationConfig
from ml.quantification.result import NucleusTable
from ml.types import ArrayBool, ArrayF32, ArrayF64

ArrayI32 = npt.NDArray[np.int32]

RADII_UM = (2.0, 2.8, 4.0, 5.6)
"""Radii of nuclei, from lymphocytes to large carcinoma nuclei."""
REACH_UM = 48.0
"""Twice the filter of the largest radius (4 sigma: 16 microns), and a nucleus."""
_SMOOTH_UM = 0.5  # sigma of the smoothing, against sensor noise
_SURROUND_UM = 10.0  # reaches beyond a large nucleus and its rim to background
_STEPS = 1e4  # responses are quantised, so that ties do not depend on a tile's rounding


def find_nuclei(signal: ArrayF32, dab: ArrayF32, config: QuantificationConfig) -> NucleusTable:
    """Nuclei of a tile, those at its border included.

    Args:
        signal: (H, W) density by which nuclei are found, ``config.mpp`` microns a pixel.
        dab: (H, W) density of DAB.
    Returns:
        NucleusTable: In pixels of the tile (a pixel's centre is at +0.5) instead of level 0.
    Source: Lindeberg 1998 (scale-normalised Laplacian of Gaussian); markers are its maxima of a
        relative depth (Soille, Morphological Image Analysis, 6.3.4), nuclei the basins around.
    """
    from skimage.segmentation import watershed

    response = _response(signal, config.mpp)
    smooth = np.asarray(cv2.GaussianBlur(signal, (0, 0), _SMOOTH_UM / config.mpp), np.float32)
    mask: ArrayBool = (smooth >= config.nucleus_od) & (response > 0)
    response = np.where(mask, np.round(response * _STEPS) / _STEPS, 0).astype(np.float32)
    markers = _markers(response, config)
    basins = watershed(-response, markers, mask=mask)
    return _measure_nuclei(_trim(basins, markers, smooth, config.mpp), dab, config)


def _response(signal: ArrayF32, mpp: float) -> ArrayF32:
    """Strongest contrast of a disk around each pixel to its surroundings, over ``RADII_UM``."""
    best = np.full(signal.shape, -np.inf, np.float32)
    for radius_um in RADII_UM:
        sigma = radius_um / mpp / math.sqrt(2)
        smooth = cv2.GaussianBlur(signal, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
        log = cv2.Laplacian(smooth, cv2.CV_32F, ksize=1, borderType=cv2.BORDER_REFLECT)
        np.maximum(best, -(sigma**2) * log, out=best)
    return best


def _markers(response: ArrayF32, config: QuantificationConfig) -> ArrayI32:
    """(H, W) int32, a number above 0 at each maximum that is deep and strong enough."""
    from skimage.morphology import reconstruction

    lowered = (1 - config.split_depth) * response
    flooded = reconstruction(lowered, response, method="dilation").astype(np.float32)
    domes, count = ndimage.label(response > flooded, np.ones((3, 3)))
    if not count:
        return np.zeros(response.shape, np.int32)
    numbers = np.arange(1, count + 1)
    height = ndimage.maximum(response - flooded, domes, numbers)
    peak = ndimage.maximum(response, domes, numbers)
    is_kept = (height >= config.split_depth * peak - 2 / _STEPS) & (peak >= config.contrast_od)
    renumbered = np.zeros(count + 1, np.int32)
    renumbered[1:][is_kept] = np.arange(1, int(is_kept.sum()) + 1)
    return np.asarray(renumbered[domes], np.int32)


def _trim(basins: ArrayI32, markers: ArrayI32, smooth: ArrayF32, mpp: float) -> ArrayI32:
    """Basins cut at half the height of their nucleus above the background around it."""
    numbers = np.arange(1, int(markers.max(initial=0)) + 1)
    if not len(numbers):
        return basins
    side = 2 * round(_SURROUND_UM / mpp) + 1
    background = cv2.erode(smooth, np.ones((side, side), np.uint8), borderType=cv2.BORDER_REFLECT)
    middle = np.zeros(len(numbers) + 1, np.float32)
    middle[1:] = ndimage.mean((smooth + background) / 2, markers, numbers)
    return np.asarray(np.where(smooth >= middle[basins], basins, 0), np.int32)


def _measure_nuclei(labels: ArrayI32, dab: ArrayF32, config: QuantificationConfig) -> NucleusTable:
    """Rows of the basins that have the size of a nucleus."""
    rows, columns = np.nonzero(labels)
    numbers = labels[rows, columns]
    count = np.bincount(numbers)

    def mean(values: npt.NDArray[Any]) -> ArrayF64:
        return np.bincount(numbers, values) / np.maximum(count, 1)

    area_um2 = count * config.mpp**2
    is_nucleus = (area_um2 >= config.min_area_um2) & (area_um2 <= config.max_area_um2)
    xy = np.stack([mean(columns + 0.5), mean(rows + 0.5)], axis=1)[is_nucleus]
    dab_od = mean(dab[rows, columns])[is_nucleus]
    limits = (config.weak_od, config.moderate_od, config.strong_od)
    return NucleusTable(
        xy_l0=xy,
        radius_um=np.sqrt(area_um2[is_nucleus] / math.pi).astype(np.float32),
        dab_od=dab_od.astype(np.float32),
        bins=np.searchsorted(limits, dab_od, side="right").astype(np.uint8),
    )
