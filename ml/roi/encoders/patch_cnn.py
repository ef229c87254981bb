"""Our own convolutional patch encoder, and its weights file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.networks.device import REFERENCE, Compute, chosen_compute, compiled
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig, standardised
from ml.networks.weightsfile import filled, read_tensors, stored_config, write_halved
from ml.roi.stain import StainEstimate, optical_density
from ml.types import ArrayF32, ImageU8

ARCHITECTURE = "patch-cnn-2"
NAME = "patch-cnn-2"
"""Changes whenever the network or its input changes: weights trained on others are refused."""

WINDOW_PX = 64
"""Side of the crops that the network was trained on."""
GPU_BATCH = 256
"""Patches at a time on a GPU: 1,024 windows, some 2 GB of feature maps in half precision."""
_SHRINK = 2
"""Patches are of 1 um per pixel, the crops of 2 on average."""


class PatchCnnEncoder:
    """A trained ``PatchCnn`` over the windows of a patch, each standardised by itself.

    The slide's own stains play no part: how strongly and in which hue it is stained was taken away
    in training. On a CPU the patches go through one at a time, so that the others do not change
    the vector of one; on a GPU they go together, in half precision, which moves a vector by less
    than .02 of its length.
    """

    name = NAME
    uses_stains = False

    def __init__(self, network: PatchCnn, *, compute: Compute = REFERENCE) -> None:
        self.compute = compute
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network.to(compute.device)
        self._fast = compiled(self.network, compute)
        self.dim = network.config.out_dim
        self.batch = GPU_BATCH if compute.batched else 1

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; the stains play no part."""
        windows = np.stack([_windows(patch) for patch in patches])
        return self.compute.forward(self._vectors, windows, reference=1, batch=GPU_BATCH)

    def _vectors(self, windows: Tensor) -> Tensor:
        """(B, dim) of (B, W, 64, 64, 3) uint8 windows, see ``PatchCnn.of_windows``."""
        count, each = windows.shape[:2]
        images = _as_images(windows.flatten(0, 1))
        with self.compute.precision():
            found = self._fast(images)
        return self.network.of_windows(found.float().reshape(count, each, -1))


def save_patch_cnn(path: str | Path, *, name: str, version: str, network: PatchCnn) -> None:
    """Write the weights in half precision, whole or not at all."""
    config = network.config
    write_halved(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_patch_cnn(path: str | Path, *, readout: str | None = None) -> PatchCnnEncoder:
    """Read what ``save_patch_cnn`` wrote.

    Args:
        readout: another readout of the same weights than the one they were trained with.
    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = stored_config(PatchCnnConfig, metadata, path.name)
    if readout is not None:
        config = dataclasses.replace(config, readout=readout)
    return PatchCnnEncoder(filled(PatchCnn(config), tensors, path.name), compute=chosen_compute())


def _as_images(windows: Tensor) -> Tensor:
    """(N, 3, 64, 64) float32 standardised densities of (N, 64, 64, 3) uint8."""
    od = _densities(windows.device)[windows.int()].permute(0, 3, 1, 2)
    return standardised(od.contiguous()).contiguous(memory_format=torch.channels_last)


@lru_cache(maxsize=2)
def _densities(device: torch.device) -> Tensor:
    """(256,) optical density of each value of a pixel."""
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    return torch.from_numpy(optical_density(levels)[:, 0].copy()).to(device)


def _windows(patch: ImageU8) -> ImageU8:
    """(W, 64, 64, 3) uint8: windows that cover a patch evenly."""
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
    """Where the fewest windows that cover a side begin, evenly spaced."""
    count = -(-side // WINDOW_PX)
    return [round(i * (side - WINDOW_PX) / max(1, count - 1)) for i in range(count)]
