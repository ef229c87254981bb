"""Result of embedding a region."""

from __future__ import annotations

from dataclasses import dataclass

from ml.types import ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class RegionEmbedding:
    """Vector of a region, with the patches it was computed from.

    Attributes:
        vector: (D,) float32.
        n_patches: Number of patches with tissue.
        patch_boxes_l0: (n_patches, 4) float64, left, top, right, bottom in level-0 pixels.
        seconds: Wall time.
        stain: Method of stain estimation, with the reason if an estimate was rejected.
        downsample: Level-0 pixels per pixel of the encoder.
        density: Patches per patch area after the vertex budget.
    """

    vector: ArrayF32
    n_patches: int
    patch_boxes_l0: ArrayF64
    seconds: float
    stain: str
    downsample: float
    density: float
