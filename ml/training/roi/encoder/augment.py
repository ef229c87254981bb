"""Augmentations of stain, scale and vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.imaging.tissue.optical_density import WHITE, optical_density
from ml.types import ArrayF64, ArrayI64, ImageU8


@dataclass(frozen=True, slots=True)
class Look:
    """Appearance of a section in another laboratory.

    Attributes:
        mixing: (3, 3) float64 applied to optical densities.
        zoom: pixels of this look per pixel of the original.
    """

    mixing: ArrayF64
    zoom: float


def random_look(rng: np.random.Generator, *, stain: float, zoom: float) -> Look:
    """Draw a look; both strengths at 0 give the original.

    Args:
        stain: deviation of the log of the strength; that of the mixing matrix's entries is half.
        zoom: largest log scale.
    """
    mixing = np.eye(3) * np.exp(rng.normal(0, stain)) + rng.normal(0, stain / 2, (3, 3))
    return Look(mixing, float(np.exp(rng.uniform(-zoom, zoom))))


def with_look(image: ImageU8, look: Look) -> ImageU8:
    """Apply the stain of ``look`` to (H, W, 3) uint8; the zoom is left to the caller."""
    od = np.clip(optical_density(image) @ look.mixing.T.astype(np.float32), 0, 3)
    return np.clip(np.power(10.0, -od) * (WHITE + 1) - 1 + 0.5, 0, 255).astype(np.uint8)


def vertex_dropout(
    rng: np.random.Generator, count: int, *, drop: tuple[float, float], keep_at_least: int
) -> ArrayI64:
    """Remove a random share of the vertices; returns the indices of the others.

    Args:
        count: number of vertices, at least 1.
        drop: least and largest share to remove.
        keep_at_least: least number that remains, if there are as many.
    Returns:
        (n,) int64, ascending.
    Source: the retrieval paper, section III-B.
    """
    kept_count = max(round(count * (1 - rng.uniform(*drop))), min(keep_at_least, count), 1)
    return np.sort(rng.permutation(count)[:kept_count]).astype(np.int64)
