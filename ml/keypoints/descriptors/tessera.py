"""Tessera: our own descriptor of endoscopic key points, and its weights file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ml.files import WEIGHTS_FOLDER
from ml.keypoints.descriptors.points import checked_points, inside_image
from ml.keypoints.descriptors.polar import PolarGrid, polar_patches
from ml.keypoints.pixels import to_grey
from ml.networks.device import REFERENCE, Compute, chosen_compute
from ml.networks.tessera_descriptor import TesseraConfig, TesseraNet
from ml.networks.weightsfile import filled, read_tensors, stored_config, write_halved
from ml.types import ArrayF32, Keypoints

ARCHITECTURE = "tessera"
WEIGHTS = WEIGHTS_FOLDER / "tessera.safetensors"
CHUNK = 128
"""Patches described at once on a CPU: their feature maps stay in the cache of a core."""

GPU_CHUNK = 4096
"""Patches described at once on a GPU: all that are sampled at once."""

SAMPLED = 4096
"""Patches sampled at once: 26 MB."""

FLAT = 1e-2
"""A patch whose normalised grey stays below this holds nothing to describe."""

SUPPORTS = (1.0, 1.4, 2.0, 2.8)
"""Factors on the support of points of unknown scale: the mean of their descriptors withstands
changes of scale and repeating texture better than any one of them. Chosen on held-out, fetoscopy,
GI and sinus images."""

SCALE_PX, SCALE_POWER, ZOOMS = 8.0, 0.7, (0.6, 2.2)
"""The support grows with (size / SCALE_PX) ** SCALE_POWER within these bounds: the whole scale
follows a detector's errors and blur, no scale at all loses what comes nearer. Chosen on pairs of
AKAZE key points found independently."""


@lru_cache(maxsize=1)
def load(name: str = "tessera") -> TesseraDescriptor:
    """The shipped descriptor, read once: it holds nothing of the images that it describes.

    Raises:
        WeightsError: see ``load_tessera``.
    """
    return load_tessera(WEIGHTS, name=name)


class TesseraDescriptor:
    """A trained ``TesseraNet`` on foveated polar patches; rotation changes nothing.

    The angle of a key point is never used: rotations cancel inside the network. Its scale is used
    where a detector tells one; ``describe`` keeps fixed supports, which blur does not move.
    """

    detector = "akaze"
    ratio = 0.95

    def __init__(
        self, network: TesseraNet, *, name: str = "tessera", compute: Compute = REFERENCE
    ) -> None:
        self.name, self.compute = name, compute
        self.dim = network.config.dim
        self.grid = grid_of(network.config)
        self.network = network.folded().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network.to(compute.device)

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points of unknown scale: the mean over fixed supports.

        Args:
            image: (H, W[, 1|3|4]). xy: (N, 2) pixels. response: (N,), not used.
        Returns:
            (N, dim) float32 of unit length; zero rows, which never match, for points outside the
            image and where the image is flat.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
        """
        points = checked_points(xy, response)
        ones = np.ones(len(points), np.float32)
        total = sum(self._described(image, points, zoom * ones) for zoom in SUPPORTS)
        rows = np.asarray(total, np.float32).reshape(len(points), self.dim)
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))
        return np.asarray(rows / length, np.float32)

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """As ``describe``, the support growing with the detected scale; (N, dim) float32."""
        points = checked_points(keypoints.xy, keypoints.response)
        return self._described(image, points, zoom_of(keypoints.size_px))

    def _described(self, image: npt.NDArray[Any], xy: ArrayF32, zoom: ArrayF32) -> ArrayF32:
        grey = to_grey(image)
        rows = np.zeros((len(xy), self.dim), np.float32)
        inside = np.flatnonzero(inside_image(xy, grey.shape))
        for start in range(0, len(inside), SAMPLED):
            part = inside[start : start + SAMPLED]
            patches = polar_patches(grey, xy[part], grid=self.grid, zoom=zoom[part])
            textured = np.abs(patches[:, 0]).max(axis=(1, 2)) > FLAT
            if textured.any():
                rows[part[textured]] = self._forward(patches[textured])
        return rows

    def _forward(self, patches: ArrayF32) -> ArrayF32:
        """(N, dim) float32, N >= 1; half precision moves a row by less than .02 of its length."""
        half = self.compute.half if self.compute.batched else None

        def network(x: Tensor) -> Tensor:
            x = x.contiguous(memory_format=torch.channels_last)
            return torch.as_tensor(self.network(x, half=half))

        return self.compute.forward(network, patches, reference=CHUNK, batch=GPU_CHUNK)


def zoom_of(size_px: ArrayF32) -> ArrayF32:
    """(N,) float32 factor on the support of a key point of that size; 1 if it is not known."""
    size = np.where(np.isfinite(size_px) & (size_px > 0), size_px, SCALE_PX)
    zoom = np.clip((size / SCALE_PX) ** SCALE_POWER, *ZOOMS)
    return np.asarray(zoom, np.float32)


def grid_of(config: TesseraConfig) -> PolarGrid:
    """Where the patches of a network are sampled."""
    return PolarGrid(config.rings, config.angles, config.radius_px, config.core_px)


def save_tessera(path: str | Path, *, name: str, version: str, network: TesseraNet) -> None:
    """Write the weights in half precision, whole or not at all."""
    config = network.config
    write_halved(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_tessera(path: str | Path, *, name: str = "tessera") -> TesseraDescriptor:
    """Read what ``save_tessera`` wrote.

    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    return TesseraDescriptor(read_tessera(path), name=name, compute=chosen_compute())


def read_tessera(path: str | Path) -> TesseraNet:
    """The network of a file as it was trained; raises as ``load_tessera``."""
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    network = TesseraNet(stored_config(TesseraConfig, metadata, path.name))
    return filled(network, tensors, path.name)
