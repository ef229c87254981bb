"""Structure in a patch: nuclei, open space (lumina, vessels, fat) and size distributions."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from ml.roi.measures.texture import mean_and_deviation
from ml.types import ArrayBool, ArrayF32, ImageU8

NUCLEI_DIM, SPACE_DIM, CONCENTRATION_DIM = 16, 22, 22
"""Lengths of the feature vectors, which define the layout of the combined vector."""
GRANULOMETRY_RADII_PX = (2, 4, 7, 11, 16, 24)  # nuclei to glands at 1 um per pixel
GRANULOMETRY_DIM = len(GRANULOMETRY_RADII_PX)

_MIN_NUCLEUS_PX = 12  # at 1 um per pixel; smaller components are fragments
_MIN_SPACE_PX = 30  # smaller components are gaps between fibres
_OPEN_DENSITY = (0.25, 0.15)
"""Two thresholds of open space, relative to the 99th percentile of density in the region."""


def concentrations(haematoxylin: ArrayF32, eosin: ArrayF32, density: ArrayF32) -> ArrayF32:
    """Statistics of each stain: mean, deviation, five percentiles; and their correlation.

    Args:
        haematoxylin, eosin, density: (S, S) float32.
    Returns:
        (22,) float32.
    """
    out: list[float] = []
    for channel in (haematoxylin, eosin, density):
        thin = channel[::2, ::2]
        out += mean_and_deviation(channel)
        out += np.percentile(thin, [5, 25, 50, 75, 95]).tolist()
    a, b = haematoxylin[::3, ::3].ravel(), eosin[::3, ::3].ravel()
    flat = a.std() < 1e-3 or b.std() < 1e-3
    out.append(0.0 if flat else float(np.corrcoef(a, b)[0, 1]))
    return np.array(out, np.float32)


def nuclei(haematoxylin: ArrayF32) -> ArrayF32:
    """Number, size, shape, darkness and spacing of nuclei.

    Args:
        haematoxylin: (S, S) float32 concentration.
    Returns:
        (16,) float32, sizes and counts as logarithms.
    """
    smooth = cv2.GaussianBlur(haematoxylin, (0, 0), 1.0)
    scaled = np.clip(smooth * 127, 0, 255).astype(np.uint8)
    threshold, _ = cv2.threshold(scaled, 0, 255, cv2.THRESH_OTSU)
    dark = (scaled > threshold).astype(np.uint8)
    opened = cv2.morphologyEx(dark, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    mask = np.asarray(opened, np.uint8)
    inside = mask > 0
    stats = cv2.connectedComponentsWithStats(mask)[2][1:]
    stats = stats[stats[:, cv2.CC_STAT_AREA] >= _MIN_NUCLEUS_PX]
    if stats.shape[0] < 2 or inside.all():
        return np.zeros(NUCLEI_DIM, np.float32)
    return np.array(
        [
            *_sizes(stats, mask.size),
            float(inside.mean()),
            threshold / 127,
            float(smooth[inside].mean(dtype=np.float64)),
            float(smooth[~inside].mean(dtype=np.float64)),
            float(haematoxylin[inside].std(dtype=np.float64)),
            *_spacing(mask, inside),
        ],
        np.float32,
    )


def open_space(density: ArrayF32) -> ArrayF32:
    """Share, number, size and granulometry of unstained areas.

    Args:
        density: (S, S) float32 optical density, relative to its 99th percentile in the region.
    Returns:
        (22,) float32.
    """
    smooth = cv2.GaussianBlur(density, (0, 0), 1.0)
    out: list[float] = []
    for limit in _OPEN_DENSITY:
        mask = (smooth < limit).astype(np.uint8)
        area = cv2.connectedComponentsWithStats(mask)[2][1:, cv2.CC_STAT_AREA]
        area = area[area > _MIN_SPACE_PX].astype(np.float64)
        largest, mean = (area.max(), area.mean()) if area.size else (0.0, 0.0)
        out += [float(mask.mean()), np.log1p(area.size), np.log1p(largest), np.log1p(mean)]
        closed = 1 - mask
        out += _openings(closed * np.uint8(127), (2, 4, 8))
        out += _openings(mask * np.uint8(127), (2, 4, 8, 16))
    return np.array(out, np.float32)


def granulometry(channel: ArrayF32) -> ArrayF32:
    """Size distribution: share of the channel removed by openings with growing discs.

    Args:
        channel: (S, S) float32.
    Returns:
        (6,) float32.
    Source: Matheron 1975 (pattern spectrum); radii above 4 px at half resolution.
    """
    smooth = cv2.GaussianBlur(channel, (0, 0), 1.0)
    scaled = np.clip(smooth * 127, 0, 255).astype(np.uint8)
    return np.array(_openings(scaled, GRANULOMETRY_RADII_PX), np.float32)


def _openings(image: ImageU8, radii_px: tuple[int, ...]) -> list[float]:
    total = cv2.mean(image)[0] + 1e-3
    previous, out = total, []
    half = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    for radius in radii_px:
        source, size = (image, radius) if radius <= 4 else (half, radius // 2)
        opened = cv2.mean(cv2.morphologyEx(source, cv2.MORPH_OPEN, _disc(size)))[0]
        out.append((previous - opened) / total)
        previous = opened
    return out


def _sizes(stats: np.ndarray, area_px: int) -> list[float]:
    area = stats[:, cv2.CC_STAT_AREA].astype(np.float64)
    width, height = stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]
    return [
        float(np.log(len(area) / area_px * 5e4)),
        float(np.log(area.mean())),
        float(np.log(np.median(area))),
        float(np.log(area.std() + 1)),
        float(np.log((area**2).sum() / area.sum())),
        float((area / (width * height)).mean()),
        float((np.minimum(width, height) / np.maximum(width, height)).mean()),
    ]


def _spacing(mask: ImageU8, inside: ArrayBool) -> list[float]:
    gap = cv2.distanceTransform(1 - mask, cv2.DIST_L2, 3)
    depth = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    mean, deep = gap.mean(dtype=np.float64), depth[inside].mean(dtype=np.float64)
    values = (mean, np.percentile(gap[::2, ::2], 90), gap.max(), deep)
    return [float(np.log1p(v)) for v in values]


@lru_cache(maxsize=16)
def _disc(radius_px: int) -> ImageU8:
    size = 2 * radius_px + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), np.uint8)
