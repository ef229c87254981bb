"""Our own convolutional patch encoder, and its weights file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig, standardised
from ml.networks.weightsfile import filled, halved, read_tensors, stored_config, write_tensors
from ml.roi.stain import StainEstimate, optical_density
from ml.types import ArrayF32, ImageU8

ARCHITECTURE = "patch-cnn-2"
NAME = "patch-cnn-2"
"""Changes whenever the network or its input changes: weights trained on others are refused."""

WINDOW_PX = 64
"""Side of the crops that the network was trained on."""
_SHRINK = 2
"""Patches are of 1 um per pixel, the crops of 2 on average."""


class PatchCnnEncoder:
    """A trained ``PatchCnn``: the mean over windows of a patch, each standardised by itself.

    The slide's own stains play no part: how strongly and in which hue it is stained was taken away
    in training.
    """

    name = NAME
    batch = 1

    def __init__(self, network: PatchCnn) -> None:
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dim = network.config.out_dim

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``. One patch at a time: the others do not change the result of one."""
        with torch.inference_mode():
            rows = [self.network(_windows(patch)).mean(dim=0).numpy() for patch in patches]
        return np.stack(rows).astype(np.float32)


def save_patch_cnn(path: str | Path, *, name: str, version: str, network: PatchCnn) -> None:
    """Write the weights in half precision, whole or not at all."""
    write_tensors(
        Path(path),
        halved(network),
        architecture=ARCHITECTURE,
        name=name,
        version=version,
        config=network.config,
    )


def load_patch_cnn(path: str | Path) -> PatchCnnEncoder:
    """Read what ``save_patch_cnn`` wrote.

    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = stored_config(PatchCnnConfig, metadata, path.name)
    return PatchCnnEncoder(filled(PatchCnn(config), tensors, path.name))


def _windows(patch: ImageU8) -> Tensor:
    """(N, 3, 64, 64) float32: windows that cover a patch evenly, standardised densities."""
    size = (max(WINDOW_PX, patch.shape[1] // _SHRINK), max(WINDOW_PX, patch.shape[0] // _SHRINK))
    small = np.asarray(cv2.resize(patch, size, interpolation=cv2.INTER_AREA), np.uint8)
    od = torch.from_numpy(optical_density(small)).permute(2, 0, 1)
    windows = [
        od[:, y : y + WINDOW_PX, x : x + WINDOW_PX]
        for y in _starts(size[1])
        for x in _starts(size[0])
    ]
    return standardised(torch.stack(windows)).contiguous(memory_format=torch.channels_last)


def _starts(side: int) -> list[int]:
    """Upper ends of the fewest windows that cover a side, evenly spaced."""
    count = -(-side // WINDOW_PX)
    return [round(i * (side - WINDOW_PX) / max(1, count - 1)) for i in range(count)]
