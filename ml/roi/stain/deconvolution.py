"""Colour deconvolution: from RGB to stain concentrations, and the stain matrix of one image.

An RGB value becomes an optical density (OD, Beer-Lambert), and an OD is a sum of stain vectors. The
vectors are estimated from the image (Macenko) or are the published ones of Ruifrok and Johnston
where the estimate cannot be trusted; the reason is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF32, ArrayF64, ImageU8

RUIFROK_HE = np.array([[0.650, 0.704, 0.286], [0.072, 0.990, 0.105]])
"""(2, 3): haematoxylin and eosin, Ruifrok and Johnston 2001, table 1 (unit OD vectors)."""

WHITE = 245.0
"""Transmitted light where the image itself shows no background."""

USUAL_SCALE = (0.75, 0.6)
"""Haematoxylin and eosin of a usual slide (99th percentile)."""
USUAL_DENSITY = 0.6
"""Mean optical density of a usual slide (99th percentile)."""

QUANTILE_LEVELS = np.array([1, 2, 5, *range(10, 91, 5), 95, 98, 99, 99.5]) / 100
"""(Q,): where the distribution of a slide's concentrations is kept."""

White = tuple[float, float, float]
MIN_TISSUE_OD = 0.15  # Macenko 2009, beta
_MIN_PIXELS = 2000  # of tissue: fewer make no stable quantile
TRUST_DEG = 38.0
"""An estimated vector further than this from the published one is not believed. Real scanners and
dyes lie up to 33 degrees off (measured on slides of seven laboratories), DAB and greens beyond."""
MIN_SPREAD_DEG = 8.0
"""Closer vectors than this mean one stain only: the deconvolution would blow up noise."""
_MIN_RED_STEP = 0.08
"""Haematoxylin absorbs more red than eosin, by this much of a unit vector at least."""


@dataclass(frozen=True, slots=True)
class StainEstimate:
    """The stains of one image.

    Attributes:
        matrix: (2, 3) float64, rows haematoxylin and eosin, unit length, in OD space.
        scale: (2,) float64, the concentration that counts as fully stained (99th percentile).
        density_scale: mean optical density that counts as dark (99th percentile).
        method: "nuclei" (haematoxylin inside nuclei, eosin outside), "macenko", "ruifrok" (the
            published vectors), or "none" (published vectors, and no normalisation).
        reason: why nothing better was used; empty if the requested method was.
        quantiles: (2, Q) float64, rising: concentrations of the tissue at ``QUANTILE_LEVELS``, in
            units of ``matrix``; (2, 0) where the tissue was not measured.
        white: RGB of the empty glass.
    """

    matrix: ArrayF64
    scale: ArrayF64
    density_scale: float
    method: str
    reason: str = ""
    quantiles: ArrayF64 = field(default_factory=lambda: np.empty((2, 0)))
    white: White = (WHITE, WHITE, WHITE)


def optical_density(image: ImageU8, white: White = (WHITE, WHITE, WHITE)) -> ArrayF32:
    """Optical density of each channel, base 10, never below 0.

    Args:
        image: (..., 3) uint8 RGB, else ``ShapeError``.
        white: RGB of the empty glass.
    Returns:
        (..., 3) float32.
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


def fixed_stains(pixels: ImageU8, *, reason: str = "asked for") -> StainEstimate:
    """The published vectors of Ruifrok and Johnston, scaled by how strongly this image is stained.

    Args:
        pixels: (..., 3) uint8 RGB, a thinned sample of the region is enough.
    """
    return _estimate(_optical_densities(pixels), unit_rows(RUIFROK_HE), "ruifrok", reason)


def with_strength_kept(stains: StainEstimate, share: float) -> StainEstimate:
    """The same vectors, scaled only in part by how strongly this image is stained.

    Args:
        share: of the log of its strength that is left in the concentrations: at 0 every image is
            as dark as any other, at 1 the scale is that of a usual slide for all.
    """
    scale = stains.scale ** (1 - share) * np.array(USUAL_SCALE) ** share
    density = stains.density_scale ** (1 - share) * USUAL_DENSITY**share
    return replace(stains, scale=scale, density_scale=density)


def estimate_stains(pixels: ImageU8) -> StainEstimate:
    """Estimate the haematoxylin and eosin vectors of one image.

    Args:
        pixels: (..., 3) uint8 RGB, a thinned sample of the region is enough.
    Returns:
        StainEstimate: Macenko's vectors, or Ruifrok's with the reason.
    Source: Macenko et al. 2009 (plane of the two largest singular vectors, 1st and 99th percentile
        of the angle); departs from it by falling back where the vectors are not those of H&E.
    """
    od = _optical_densities(pixels)
    published = unit_rows(RUIFROK_HE)
    tissue = od[(od.max(axis=1) > MIN_TISSUE_OD) & (od.mean(axis=1) < 1.5)]
    if tissue.shape[0] < _MIN_PIXELS:
        return _estimate(
            od, published, "ruifrok", f"only {tissue.shape[0]} tissue pixels, {_MIN_PIXELS} needed"
        )
    matrix = macenko_vectors(tissue)
    doubt = doubt_about(matrix)
    if doubt:
        return _estimate(od, published, "ruifrok", doubt)
    return _estimate(od, matrix, "macenko", "")


def doubt_about(matrix: ArrayF64) -> str:
    """Why these vectors (2, 3) cannot be those of haematoxylin and eosin; empty if they can."""
    published = unit_rows(RUIFROK_HE)
    angle_deg = np.degrees(np.arccos(np.clip((matrix * published).sum(axis=1), -1, 1)))
    spread_deg = float(np.degrees(np.arccos(np.clip(matrix[0] @ matrix[1], -1, 1))))
    if spread_deg < MIN_SPREAD_DEG:
        return f"one stain only: vectors {spread_deg:.0f} degrees apart"
    if matrix[0, 0] - matrix[1, 0] < _MIN_RED_STEP and angle_deg.max() <= TRUST_DEG:
        return "one stain only: the presumed eosin absorbs as much red as haematoxylin"
    if angle_deg.max() > TRUST_DEG:
        return f"not H&E: a vector is {angle_deg.max():.0f} degrees off"
    return ""


def deconvolve(image: ImageU8, stains: StainEstimate) -> ArrayF32:
    """Stain concentrations of each pixel, 1.0 being fully stained in this image.

    Args:
        image: (..., 3) uint8 RGB.
    Returns:
        (..., 2) float32: haematoxylin, eosin; clipped to [0, 2].
    Source: Ruifrok and Johnston 2001, with two stains solved by least squares.
    """
    unmix = np.linalg.pinv(stains.matrix) / stains.scale
    values = optical_density(image, stains.white) @ unmix.astype(np.float32)
    return np.asarray(np.clip(values, 0.0, 2.0), dtype=np.float32)


def macenko_vectors(od: ArrayF64) -> ArrayF64:
    """(2, 3) unit vectors, haematoxylin first, of optical densities (N, 3) of tissue."""
    _, vectors = np.linalg.eigh(np.cov(od, rowvar=False))
    plane = vectors[:, [2, 1]]
    if plane[:, 0].sum() < 0:
        plane[:, 0] *= -1
    projected = od @ plane
    angles = np.arctan2(projected[:, 1], projected[:, 0])
    low, high = np.percentile(angles, [1, 99])
    ends = np.array([[np.cos(a), np.sin(a)] for a in (low, high)]) @ plane.T
    ends = unit_rows(np.maximum(ends, 1e-6))
    red_first = ends[np.argsort(-ends[:, 0])]
    return np.asarray(red_first)


def _optical_densities(pixels: ImageU8) -> ArrayF64:
    return optical_density(pixels).reshape(-1, 3).astype(np.float64)


def _estimate(od: ArrayF64, matrix: ArrayF64, method: str, reason: str) -> StainEstimate:
    if od.shape[0] == 0:
        return StainEstimate(matrix, np.ones(2), 1.0, method, reason)
    scale = np.percentile(od @ np.linalg.pinv(matrix), 99, axis=0)
    density_scale = float(np.percentile(od.mean(axis=1), 99))
    return StainEstimate(matrix, np.maximum(scale, 0.15), max(density_scale, 0.2), method, reason)


def unit_rows(matrix: ArrayF64) -> ArrayF64:
    """(N, 3) directions of optical density, each of length 1."""
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def with_residual(matrix: ArrayF64) -> ArrayF64:
    """(3, 3): the two stains (2, 3) and the direction that is neither."""
    third = np.cross(matrix[0], matrix[1])
    return np.vstack([matrix, third / np.linalg.norm(third)])
