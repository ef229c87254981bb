"""Colour of a patch: for endoscopy, where it is the tissue's and not the laboratory's."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8

NAME = "colour-1"
QUANTILES = (5, 25, 50, 75, 95)
_STEP = 2


class ColourEncoder:
    """Quantiles of lightness and of the two colour axes of CIELAB."""

    name = NAME
    dim = 3 * len(QUANTILES)

    def __init__(self) -> None:
        self.scale = np.ones(self.dim, np.float32)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; the stains play no part."""
        return np.stack([colour_quantiles(patch) for patch in patches])


def colour_quantiles(patch: ImageU8) -> ArrayF32:
    """(15,) float32: five quantiles of L, of a, of b, 0 to 255 each as OpenCV scales them.

    Args:
        patch: (H, W, 3) uint8 RGB.
    """
    lab = cv2.cvtColor(np.ascontiguousarray(patch[::_STEP, ::_STEP]), cv2.COLOR_RGB2LAB)
    return np.percentile(lab.reshape(-1, 3), QUANTILES, axis=0).T.ravel().astype(np.float32)
