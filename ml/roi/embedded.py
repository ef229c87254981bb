"""What embedding a region gives."""

from __future__ import annotations

from dataclasses import dataclass

from ml.types import ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of a region and where it comes from.

    Attributes:
        vector: (D,) float32.
        n_patches: vertices of the graph: patches that hold tissue.
        patch_boxes_l0: (n_patches, 4) float64: left, top, right, bottom in level-0 pixels.
        seconds: wall time.
        stain: how the stains were found, with the reason where an estimate was not trusted.
        downsample: level-0 pixels per pixel of the encoder.
        density: patches per patch area after the vertex budget.
    """

    vector: ArrayF32
    n_patches: int
    patch_boxes_l0: ArrayF64
    seconds: float
    stain: str
    downsample: float
    density: float
