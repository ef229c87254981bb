"""Colour deconvolution of RGB to stain concentrations, and stain estimation of an image.

An RGB value becomes an optical density (OD, Beer-Lambert), and an OD is a sum of stain vectors. The
vectors are estimated from the image (Macenko), or the published ones of Ruifrok and Johnston if the
estimate is not plausible; the reason is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ml.imaging.tissue.optical_density import WHITE, White, optical_density
from ml.types import ArrayF32, ArrayF64, ImageU8

RUIFROK_HE = np.array([[0.650, 0.704, 0.286], [0.072, 0.990, 0.105]])
"""(2, 3): haematoxylin and eosin, Ruifrok and Johnston 2001, table 1 (unit OD vectors)."""

TYPICAL_SCALE = (0.75, 0.6)
"""Concentration of haematoxylin and eosin on a typical slide (99th percentile)."""
TYPICAL_DENSITY = 0.6
"""Mean optical density of a typical slide (99th percentile)."""

QUANTILE_LEVELS = np.array([1, 2, 5, *range(10, 91, 5), 95, 98, 99, 99.5]) / 100
"""Levels (Q,) of the stored quantiles of concentration."""

MIN_TISSUE_OD = 0.15  # Macenko 2009, beta
_MIN_PIXELS = 2000  # of tissue, for stable quantiles
TRUST_DEG = 38.0
"""Largest plausible angle between an estimated and the published vector. Scanners and dyes differ
by up to 33 degrees (measured on slides of seven laboratories), DAB and greens by more."""
MIN_SPREAD_DEG = 8.0
"""Smallest angle between the two vectors; below, deconvolution would amplify noise."""
_MIN_RED_STEP = 0.08
"""Smallest difference of red between the unit vectors of haematoxylin and eosin."""


@dataclass(frozen=True, slots=True)
class StainEstimate:
    """The stains of one image.

    Attributes:
        matrix: (2, 3) float64, rows haematoxylin and eosin, unit length, in OD space.
        scale: (2,) float64, 99th percentile of the concentrations.
        density_scale: 99th percentile of the mean optical density.
        method: "nuclei" (haematoxylin inside nuclei, eosin outside), "macenko", "ruifrok" (the
            published vectors), or "none" (published vectors, and no normalisation).
        reason: Reason for a fallback; empty if the requested method was used.
        quantiles: (2, Q) float64, ascending concentrations of the tissue at ``QUANTILE_LEVELS``, in
            units of ``matrix``; (2, 0) if not measured.
        white: RGB of empty glass.
    """

    matrix: ArrayF64
    scale: ArrayF64
    density_scale: float
    method: str
    reason: str = ""
    quantiles: ArrayF64 = field(default_factory=lambda: np.empty((2, 0)))
    white: White = (WHITE, WHITE, WHITE)


def published_stains(pixels: ImageU8, *, reason: str = "asked for") -> StainEstimate:
    """Published stain vectors of Ruifrok and Johnston, scaled by the staining of an image.

    Args:
        pixels: (..., 3) uint8 RGB, the region or a sample of it.
        reason: Reason to store with the estimate.
    """
    return _estimate(_optical_densities(pixels), unit_rows(RUIFROK_HE), "ruifrok", reason)


def with_partial_scale(stains: StainEstimate, share: float) -> StainEstimate:
    """Replace the scale of an estimate partly by that of a typical slide.

    Args:
        share: Share of the logarithmic staining strength that remains in the concentrations: 0
            removes all differences between images, 1 keeps them.
    """
    scale = stains.scale ** (1 - share) * np.array(TYPICAL_SCALE) ** share
    density = stains.density_scale ** (1 - share) * TYPICAL_DENSITY**share
    return replace(stains, scale=scale, density_scale=density)


def estimate_stains(pixels: ImageU8) -> StainEstimate:
    """Estimate the haematoxylin and eosin vectors of one image.

    Args:
        pixels: (..., 3) uint8 RGB, the region or a sample of it.
    Returns:
        StainEstimate: Vectors of Macenko's method, or published ones with the reason.
    Source: Macenko et al. 2009 (plane of the two largest singular vectors, 1st and 99th percentile
        of the angle); departs from it by a fallback if the vectors are not those of H&E.
    """
    od = _optical_densities(pixels)
    published = unit_rows(RUIFROK_HE)
    tissue = od[(od.max(axis=1) > MIN_TISSUE_OD) & (od.mean(axis=1) < 1.5)]
    if tissue.shape[0] < _MIN_PIXELS:
        return _estimate(
            od, published, "ruifrok", f"only {tissue.shape[0]} tissue pixels, {_MIN_PIXELS} needed"
        )
    matrix = macenko_vectors(tissue)
    problem = rejection_reason(matrix)
    if problem:
        return _estimate(od, published, "ruifrok", problem)
    return _estimate(od, matrix, "macenko", "")


def rejection_reason(matrix: ArrayF64) -> str:
    """Reason why vectors (2, 3) are not those of haematoxylin and eosin; empty if plausible."""
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
    """Stain concentrations of each pixel, relative to ``stains.scale``.

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
    """Stain vectors (2, 3) of unit length, haematoxylin first, from optical densities (N, 3)."""
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
    """Scale rows (N, 3) to length 1."""
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def with_residual(matrix: ArrayF64) -> ArrayF64:
    """Append the orthogonal residual direction to two stain vectors (2, 3): (3, 3)."""
    third = np.cross(matrix[0], matrix[1])
    return np.vstack([matrix, third / np.linalg.norm(third)])
