"""Tessera, a rotation-invariant descriptor of endoscopic key points, and its weights file."""

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
from ml.networks.device import REFERENCE, Compute, select_compute
from ml.networks.tessera_descriptor import TesseraConfig, TesseraNet
from ml.networks.weightsfile import load_tensors, read_config, read_tensors, write_half_precision
from ml.types import ArrayF32, Keypoints

ARCHITECTURE = "tessera"
WEIGHTS = WEIGHTS_FOLDER / "tessera.safetensors"
CHUNK = 128
"""Patches per batch on a CPU, whose feature maps fit into the cache of a core."""

GPU_CHUNK = 4096
"""Patches per batch on a GPU."""

SAMPLE_CHUNK = 4096
"""Patches sampled per chunk: 26 MB."""

FLAT = 1e-2
"""Largest normalised grey of a patch without texture, which is not described."""

SUPPORTS = (1.0, 1.4, 2.0, 2.8)
"""Factors on the support of points of unknown scale. The mean of their descriptors is more robust
to changes of scale and repetitive texture than each. Chosen on held-out, fetoscopy, GI and sinus
images."""

SCALE_PX, SCALE_POWER, ZOOMS = 8.0, 0.7, (0.6, 2.2)
"""The support is proportional to (size / SCALE_PX) ** SCALE_POWER within bounds, a compromise
between errors of the detected scale and scale invariance. Chosen on pairs of AKAZE key points."""


@lru_cache(maxsize=1)
def load(name: str = "tessera") -> TesseraDescriptor:
    """Load the shipped descriptor, cached.

    Raises:
        WeightsError: See ``load_tessera``.
    """
    return load_tessera(WEIGHTS, name=name)


class TesseraDescriptor:
    """A trained ``TesseraNet`` on foveated polar patches; invariant to rotation.

    The angle of key points is not used. ``describe_keypoints`` uses their scale; ``describe`` has
    fixed supports.
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
        """Describe points of unknown scale by the mean over fixed supports.

        Args:
            image: (H, W[, 1|3|4]).
            xy: (N, 2) pixels.
            response: (N,), not used.
        Returns:
            (N, dim) float32 of unit length; zeros, which never match, for points outside the image
            and in flat areas.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
        """
        points = checked_points(xy, response)
        ones = np.ones(len(points), np.float32)
        total = sum(self._describe(image, points, zoom * ones) for zoom in SUPPORTS)
        rows = np.asarray(total, np.float32).reshape(len(points), self.dim)
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))
        return np.asarray(rows / length, np.float32)

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe key points with a support by their scale, see ``zoom_of``: (N, dim) float32."""
        points = checked_points(keypoints.xy, keypoints.response)
        return self._describe(image, points, zoom_of(keypoints.size_px))

    def _describe(self, image: npt.NDArray[Any], xy: ArrayF32, zoom: ArrayF32) -> ArrayF32:
        grey = to_grey(image)
        rows = np.zeros((len(xy), self.dim), np.float32)
        inside = np.flatnonzero(inside_image(xy, grey.shape))
        for start in range(0, len(inside), SAMPLE_CHUNK):
            part = inside[start : start + SAMPLE_CHUNK]
            patches = polar_patches(grey, xy[part], grid=self.grid, zoom=zoom[part])
            textured = np.abs(patches[:, 0]).max(axis=(1, 2)) > FLAT
            if textured.any():
                rows[part[textured]] = self._forward(patches[textured])
        return rows

    def _forward(self, patches: ArrayF32) -> ArrayF32:
        """Apply the network; half precision changes a row by less than 2 % of its length."""
        half = self.compute.half if self.compute.batched else None

        def network(x: Tensor) -> Tensor:
            x = x.contiguous(memory_format=torch.channels_last)
            return torch.as_tensor(self.network(x, half=half))

        return self.compute.forward(network, patches, reference=CHUNK, batch=GPU_CHUNK)


def zoom_of(size_px: ArrayF32) -> ArrayF32:
    """Factor (N,) float32 on the support of key points by their size; 1 if unknown."""
    size = np.where(np.isfinite(size_px) & (size_px > 0), size_px, SCALE_PX)
    zoom = np.clip((size / SCALE_PX) ** SCALE_POWER, *ZOOMS)
    return np.asarray(zoom, np.float32)


def grid_of(config: TesseraConfig) -> PolarGrid:
    """Sampling grid of the patches of a network."""
    return PolarGrid(config.rings, config.angles, config.radius_px, config.core_px)


def save_tessera(path: str | Path, *, name: str, version: str, network: TesseraNet) -> None:
    """Write the weights in half precision, atomically."""
    config = network.config
    write_half_precision(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_tessera(path: str | Path, *, name: str = "tessera") -> TesseraDescriptor:
    """Load a descriptor from the output of ``save_tessera``.

    Raises:
        WeightsError: Missing or damaged file, another architecture or other sizes.
    """
    return TesseraDescriptor(read_tessera(path), name=name, compute=select_compute())


def read_tessera(path: str | Path) -> TesseraNet:
    """Read the network of a file of ``save_tessera``.

    Raises:
        WeightsError: See ``load_tessera``.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    network = TesseraNet(read_config(TesseraConfig, metadata, path.name))
    return load_tensors(network, tensors, path.name)
