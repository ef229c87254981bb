"""Our own convolutional patch encoder, and its weights file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.networks.weightsfile import filled, halved, read_tensors, stored_config, write_tensors
from ml.roi.stain import StainEstimate, stain_channels
from ml.types import ArrayF32, ImageU8

ARCHITECTURE = "patch-cnn"
NAME = "patch-cnn"


class PatchCnnEncoder:
    """A trained ``PatchCnn`` on stain concentrations relative to the region's own."""

    name = NAME
    batch = 1

    def __init__(self, network: PatchCnn) -> None:
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dim = network.config.out_dim
        self.scale = np.ones(self.dim, np.float32)
        self.alike = np.zeros(self.dim, np.bool_)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; one patch at a time: no vector depends on another patch."""
        with torch.inference_mode():
            rows = [self.network(_input(patch, stains))[0].numpy() for patch in patches]
        return np.stack(rows).astype(np.float32)


def save_patch_cnn(path: str | Path, *, name: str, version: str, network: PatchCnn) -> None:
    """Write the weights in half precision, whole or not at all."""
    tensors = halved(network)
    write_tensors(
        Path(path),
        tensors,
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


def _input(patch: ImageU8, stains: StainEstimate) -> Tensor:
    """(1, 3, h, w) float32: haematoxylin, eosin, mean density, 1.0 being fully stained."""
    x = stain_channels(patch, stains)
    return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)[None], dtype=np.float32))
