"""Textons as a patch encoder: what local shapes of the stains a patch is made of."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch

from ml.networks.textons import JetConfig, TextonBank
from ml.roi.stain import StainEstimate, stain_channels
from ml.types import ArrayF32, ImageU8

NAME = "textons-1"
"""Changes whenever a measurement changes: weights trained on others are refused."""


class TextonEncoder:
    """A trained ``TextonBank`` on the concentrations of the stains."""

    name = NAME
    batch = 1

    def __init__(self, network: TextonBank) -> None:
        self.network = network.eval()
        self.dim = network.config.words
        self.scale = np.ones(self.dim, np.float32)
        self.alike = np.ones(self.dim, np.bool_)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; one patch at a time: no vector depends on another patch."""
        config = self.network.config
        with torch.inference_mode():
            rows = [
                self.network(torch.from_numpy(local_jets(patch, stains, config))).numpy()
                for patch in patches
            ]
        return np.stack(rows).astype(np.float32)


def local_jets(patch: ImageU8, stains: StainEstimate, config: JetConfig) -> ArrayF32:
    """``channel_jets`` of haematoxylin, eosin and mean density, 1.0 being fully stained.

    Args:
        patch: (H, W, 3) uint8 RGB.
        stains: of the region.
    """
    return channel_jets(stain_channels(patch, stains), config)


def channel_jets(channels: ArrayF32, config: JetConfig) -> ArrayF32:
    """Measurements at points of a patch that stay the same when it is turned.

    Of each channel at each scale: the smoothed value, and of its derivatives up to the second the
    gradient's length, the Laplacian and the difference of the Hessian's eigenvalues, all scaled to
    the same unit.

    Args:
        channels: (H, W, C) float32.
    Returns:
        (points, jet_dim) float32, points row by row.
    Source: Lindeberg 1998, normalised derivatives; the second ones by differences of the first.
    """
    border, stride = config.border_px, config.stride_px
    found = []
    for sigma in config.scales_px:
        smooth = np.asarray(cv2.GaussianBlur(channels, (0, 0), sigma), np.float32)
        x, y = _slopes(smooth, sigma)
        (xx, xy), (_, yy) = _slopes(x, sigma), _slopes(y, sigma)
        elongation = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
        for measure in (smooth, np.hypot(x, y), xx + yy, elongation):
            found.append(measure[border:-border:stride, border:-border:stride])
    jets = np.concatenate(found, axis=2)
    return np.ascontiguousarray(jets.reshape(-1, jets.shape[2]), np.float32)


def _slopes(image: ArrayF32, sigma: float) -> tuple[ArrayF32, ArrayF32]:
    """Derivatives along x and y in units of ``sigma``."""
    along = [(1, 0), (0, 1)]
    x, y = (cv2.Sobel(image, cv2.CV_32F, *order, scale=sigma / 8) for order in along)
    return np.asarray(x, np.float32), np.asarray(y, np.float32)
