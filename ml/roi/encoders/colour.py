"""Colour of a patch: for endoscopy, where it is the tissue's more than a laboratory's."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8

NAME = "colour-1"
BINS = (16, 8, 8)
"""Of hue, saturation and value."""


class ColourEncoder:
    """The square root of the joint histogram of hue, saturation and value (Hellinger distance)."""

    name = NAME
    batch = 1
    dim = BINS[0] * BINS[1] * BINS[2]

    def __init__(self) -> None:
        self.scale = np.ones(self.dim, np.float32)
        self.alike = np.ones(self.dim, np.bool_)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; the stains play no part."""
        return np.stack([colour_histogram(patch) for patch in patches])


def colour_histogram(patch: ImageU8) -> ArrayF32:
    """(1024,) float32 of unit length, value varying fastest.

    Args:
        patch: (H, W, 3) uint8 RGB.
    """
    hsv = cv2.cvtColor(np.ascontiguousarray(patch), cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1, 2], None, BINS, [0, 180, 0, 256, 0, 256]).ravel()
    return np.asarray(np.sqrt(counts / counts.sum()), np.float32)
