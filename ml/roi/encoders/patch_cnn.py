"""Convolutional patch encoder, and its weights file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.imaging.tissue.optical_density import optical_density
from ml.networks.device import REFERENCE, Compute, compile_network, select_compute
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig, standardise
from ml.networks.weightsfile import load_tensors, read_config, read_tensors, write_half_precision
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8

ARCHITECTURE = "patch-cnn-2"
NAME = "patch-cnn-2"
"""Changed with the network or its input, so that weights of other versions are rejected."""

WINDOW_PX = 64
"""Side of the crops that the network was trained on."""
GPU_BATCH = 256
"""Patches per batch on a GPU: 1,024 windows, about 2 GB of feature maps in half precision."""
_SHRINK = 2
"""Patches have 1 um per pixel, the training crops 2 on average."""


class PatchCnnEncoder:
    """A trained ``PatchCnn`` over the windows of a patch, each standardised.

    Stains are not used: training removed the dependence on their strength and hue. On a CPU patches
    are encoded one at a time, so that a vector does not depend on other patches; on a GPU in
    batches and half precision, which changes a vector by less than 2 % of its length.
    """

    name = NAME
    uses_stains = False

    def __init__(self, network: PatchCnn, *, compute: Compute = REFERENCE) -> None:
        self.compute = compute
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network.to(compute.device)
        self._compiled = compile_network(self.network, compute)
        self.dim = network.config.out_dim
        self.batch = GPU_BATCH if compute.batched else 1

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; stains are not used."""
        windows = np.stack([_windows(patch) for patch in patches])
        return self.compute.forward(self._vectors, windows, reference=1, batch=GPU_BATCH)

    def _vectors(self, windows: Tensor) -> Tensor:
        """Map windows (B, W, 64, 64, 3) uint8 to (B, dim), see ``PatchCnn.combine_windows``."""
        count, n_windows = windows.shape[:2]
        images = _as_images(windows.flatten(0, 1))
        with self.compute.precision():
            features = self._compiled(images)
        return self.network.combine_windows(features.float().reshape(count, n_windows, -1))


def save_patch_cnn(path: str | Path, *, name: str, version: str, network: PatchCnn) -> None:
    """Write the weights in half precision, atomically."""
    config = network.config
    write_half_precision(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_patch_cnn(path: str | Path, *, readout: str | None = None) -> PatchCnnEncoder:
    """Read the output of ``save_patch_cnn``.

    Args:
        readout: Readout instead of that of training.
    Raises:
        WeightsError: Missing or damaged file, another architecture or other sizes.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = read_config(PatchCnnConfig, metadata, path.name)
    if readout is not None:
        config = dataclasses.replace(config, readout=readout)
    return PatchCnnEncoder(
        load_tensors(PatchCnn(config), tensors, path.name), compute=select_compute()
    )


def _as_images(windows: Tensor) -> Tensor:
    """Convert (N, 64, 64, 3) uint8 to standardised densities (N, 3, 64, 64) float32."""
    od = _densities(windows.device)[windows.int()].permute(0, 3, 1, 2)
    return standardise(od.contiguous()).contiguous(memory_format=torch.channels_last)


@lru_cache(maxsize=2)
def _densities(device: torch.device) -> Tensor:
    """Optical density (256,) of each pixel value."""
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    return torch.from_numpy(optical_density(levels)[:, 0].copy()).to(device)


def _windows(patch: ImageU8) -> ImageU8:
    """Windows (W, 64, 64, 3) uint8 that cover a patch evenly."""
    size = (max(WINDOW_PX, patch.shape[1] // _SHRINK), max(WINDOW_PX, patch.shape[0] // _SHRINK))
    small = np.asarray(cv2.resize(patch, size, interpolation=cv2.INTER_AREA), np.uint8)
    return np.stack(
        [
            small[y : y + WINDOW_PX, x : x + WINDOW_PX]
            for y in _starts(size[1])
            for x in _starts(size[0])
        ]
    )


def _starts(side: int) -> list[int]:
    """Evenly spaced start positions of the minimum number of windows that cover a side."""
    count = -(-side // WINDOW_PX)
    return [round(i * (side - WINDOW_PX) / max(1, count - 1)) for i in range(count)]
