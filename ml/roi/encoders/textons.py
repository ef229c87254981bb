"""Patch encoder by textons of locally normalised stains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch

from ml.networks.textons import TextonBank, TextonConfig
from ml.networks.weightsfile import (
    load_tensors,
    network_tensors,
    read_config,
    read_tensors,
    write_tensors,
)
from ml.roi.stain.deconvolution import StainEstimate
from ml.roi.stain.local import local_contrast
from ml.types import ArrayF32, ImageU8

NAME = "local-textons-1"
"""Changed with the measurements, so that weights of other versions are rejected."""


class TextonEncoder:
    """A trained ``TextonBank`` on locally normalised stains."""

    name = NAME
    batch = 1
    uses_stains = False

    def __init__(self, network: TextonBank, config: TextonConfig) -> None:
        self.network, self.config = network.eval(), config
        self.dim = config.words

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; stains are not used."""
        return np.stack([self.histogram(patch) for patch in patches])

    def histogram(self, image: ImageU8, mask: ImageU8 | None = None) -> ArrayF32:
        """Texton histogram of an image (H, W, 3) uint8: (dim,) float32 of unit length.

        Args:
            mask: (H, W) uint8, nonzero where points are counted; None or zeros count all points.
        """
        jets = contrast_jets(image, self.config)
        if mask is not None:
            border, stride = self.config.border_px, self.config.stride_px
            inside = mask[border:-border:stride, border:-border:stride].ravel() > 0
            jets = jets[inside] if inside.any() else jets
        with torch.inference_mode():
            return np.array(self.network(torch.from_numpy(jets)).numpy(), np.float32)


def contrast_jets(image: ImageU8, config: TextonConfig) -> ArrayF32:
    """``channel_jets`` of the locally normalised stains of an RGB image (H, W, 3) uint8."""
    channels = local_contrast(
        image,
        sigma_px=config.sigma_px,
        floor_od=config.floor_od,
        own_vectors=config.own_vectors,
    )
    return channel_jets(channels, config)


def save_textons(path: str | Path, encoder: TextonEncoder, *, version: str) -> None:
    """Write a texton dictionary, atomically."""
    write_tensors(
        Path(path),
        network_tensors(encoder.network),
        architecture=NAME,
        name=NAME,
        version=version,
        config=encoder.config,
    )


def load_textons(path: str | Path) -> TextonEncoder:
    """Read the output of ``save_textons``.

    Raises:
        WeightsError: Missing or damaged file, another architecture or other sizes.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, NAME)
    config = read_config(TextonConfig, metadata, path.name)
    return TextonEncoder(load_tensors(TextonBank(config), tensors, path.name), config)


def channel_jets(channels: ArrayF32, config: TextonConfig) -> ArrayF32:
    """Rotation-invariant measurements at sample points of a patch.

    For each channel and scale: smoothed value, gradient magnitude, Laplacian, and difference of the
    eigenvalues of the Hessian, in scale-normalised units.

    Args:
        channels: (H, W, C) float32.
    Returns:
        (points, jet_dim) float32, points in row order.
    Source: Lindeberg 1998, normalised derivatives; second derivatives are computed from the first.
    """
    border, stride = config.border_px, config.stride_px
    measures = []
    for sigma in config.scales_px:
        smooth = np.asarray(cv2.GaussianBlur(channels, (0, 0), sigma), np.float32)
        x, y = _derivatives(smooth, sigma)
        (xx, xy), (_, yy) = _derivatives(x, sigma), _derivatives(y, sigma)
        elongation = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
        for measure in (smooth, np.hypot(x, y), xx + yy, elongation):
            measures.append(measure[border:-border:stride, border:-border:stride])
    jets = np.concatenate(measures, axis=2)
    return np.ascontiguousarray(jets.reshape(-1, jets.shape[2]), np.float32)


def _derivatives(image: ArrayF32, sigma: float) -> tuple[ArrayF32, ArrayF32]:
    """Derivatives along x and y in units of ``sigma``."""
    along = [(1, 0), (0, 1)]
    x, y = (cv2.Sobel(image, cv2.CV_32F, *order, scale=sigma / 8) for order in along)
    return np.asarray(x, np.float32), np.asarray(y, np.float32)
