"""Textons of locally normalised stains as a patch encoder: tissue, whatever its stain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch

from ml.networks.textons import TextonBank, TextonConfig
from ml.networks.weightsfile import filled, read_tensors, stored_config, whole, write_tensors
from ml.roi.stain import StainEstimate
from ml.roi.stain.local import local_contrast
from ml.types import ArrayF32, ImageU8

NAME = "local-textons-1"
"""Changes whenever a measurement changes: weights trained on others are refused."""


class TextonEncoder:
    """A trained ``TextonBank`` on stains normalised by their surroundings."""

    name = NAME
    batch = 1
    uses_stains = False

    def __init__(self, network: TextonBank, config: TextonConfig) -> None:
        self.network, self.config = network.eval(), config
        self.dim = config.words

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; the stains play no part. One patch at a time: the others in a call
        do not change the result of one.
        """
        return np.stack([self.histogram(patch) for patch in patches])

    def histogram(self, image: ImageU8, mask: ImageU8 | None = None) -> ArrayF32:
        """(dim,) float32 of unit length, of an image (H, W, 3) uint8 of any size.

        Args:
            mask: (H, W) uint8, 0 where no point counts; None or an all-zero mask counts all points.
        """
        jets = contrast_jets(image, self.config)
        if mask is not None:
            border, stride = self.config.border_px, self.config.stride_px
            inside = mask[border:-border:stride, border:-border:stride].ravel() > 0
            jets = jets[inside] if inside.any() else jets
        with torch.inference_mode():
            return np.array(self.network(torch.from_numpy(jets)).numpy(), np.float32)


def contrast_jets(image: ImageU8, config: TextonConfig) -> ArrayF32:
    """(points, jet_dim) float32: ``channel_jets`` of the locally normalised stains of RGB uint8."""
    channels = local_contrast(
        image,
        sigma_px=config.sigma_px,
        floor_od=config.floor_od,
        own_vectors=config.own_vectors,
    )
    return channel_jets(channels, config)


def save_textons(path: str | Path, encoder: TextonEncoder, *, version: str) -> None:
    """Write a dictionary, whole or not at all."""
    write_tensors(
        Path(path),
        whole(encoder.network),
        architecture=NAME,
        name=NAME,
        version=version,
        config=encoder.config,
    )


def load_textons(path: str | Path) -> TextonEncoder:
    """Read what ``save_textons`` wrote.

    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, NAME)
    config = stored_config(TextonConfig, metadata, path.name)
    return TextonEncoder(filled(TextonBank(config), tensors, path.name), config)


def channel_jets(channels: ArrayF32, config: TextonConfig) -> ArrayF32:
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
