"""The ``vit`` descriptor: an adapted vision transformer, sampled at key points.

``ml.keypoints.descriptors.vit_dense`` matches the patches of two images without key points.

Source: dinov2-adaptation-endoscopic-matching, section III-A.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.keypoints.descriptors.points import checked_points, inside_image
from ml.keypoints.descriptors.vit_weights import read_network
from ml.keypoints.pixels import to_u8
from ml.networks.device import REFERENCE, Compute, select_compute
from ml.networks.vit_adapter import SMALL, VitConfig, VitMatcher
from ml.types import ArrayF32, ImageU8, Keypoints

WEIGHTS = WEIGHTS_FOLDER / "vit.safetensors"
PREFIX = "vit:"
"""``vit:PATH_OR_NAME`` is a weights file, or a model of transformers without adaptation."""

_MIN_PATCHES = 2
"""Smallest number of patches along a side, for interpolation between them."""


class VitDescriptor:
    """Descriptors of an adapted vision transformer.

    Attributes:
        name, dim, detector, ratio: See ``ml.keypoints.descriptors.registry.Descriptor``. Key points
            of AKAZE are more repeatable here than those of SIFT: 484 against 313 matches on frames
            3 and 4 of sinus-4584, with more correct ones at each ratio.
        network: The model, in evaluation mode.
    """

    detector = "akaze"
    ratio = 0.95

    def __init__(
        self,
        name: str,
        network: VitMatcher,
        *,
        version: str = "",
        compute: Compute = REFERENCE,
    ) -> None:
        self.name, self.version, self.compute = name, version, compute
        self.network = network.eval().to(compute.device)
        self.dim = network.width

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Sample the descriptor map at points.

        Args:
            image: (H, W[, 1|3|4]) of any size and depth, scaled to a maximum of tokens.
            xy: (N, 2) pixels.
            response: (N,), not used.
        Returns:
            (N, dim) float32, unit length; zeros for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, response is not (N,), or not an image.
        """
        points = checked_points(xy, response)
        pixels = to_u8(image)
        rows = np.zeros((len(points), self.dim), np.float32)
        inside = inside_image(points, pixels.shape)
        if not inside.any():
            return rows
        features, scale = self.describe_map(pixels)
        rows[inside] = sample_rows(
            features, _to_input(points[inside], scale), self.network.patch_px
        )
        return rows

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe key points like ``describe``; scale and angle are not used."""
        return self.describe(image, keypoints.xy, keypoints.response)

    def describe_map(self, image: npt.NDArray[Any]) -> tuple[Tensor, tuple[float, float]]:
        """Compute the descriptor map of an image.

        Returns:
            features: (E, h, w), unit length along E.
            scale: Pixels of the network input per pixel of the image, along x and y.
        """
        pixels, scale = self.network_input(image)
        batch = (
            torch.from_numpy(pixels).to(self.compute.device).permute(2, 0, 1)[None].float().div(255)
        )
        with torch.inference_mode(), self.compute.precision():
            features = self.network(batch)[0].float().cpu()
        return torch.nan_to_num(features), scale

    def network_input(self, image: npt.NDArray[Any]) -> tuple[ImageU8, tuple[float, float]]:
        """Scale an image to the input size of the network.

        Returns:
            pixels: (h * P, w * P, 3) uint8 RGB of at most ``max_tokens`` patches.
            scale: See ``describe_map``.
        """
        rgb = _to_rgb(image)
        height, width = rgb.shape[:2]
        patch_px, max_tokens = self.network.patch_px, self.network.config.max_tokens
        shrink = min(1.0, float(np.sqrt(max_tokens * patch_px**2 / (height * width))))
        # very long images have two patches along the short side, and at most ``max_tokens`` in all
        rows = max(int(height * shrink / patch_px), _MIN_PATCHES)
        columns = max(int(width * shrink / patch_px), _MIN_PATCHES)
        rows, columns = (
            min(rows, max(max_tokens // columns, 2)),
            min(columns, max(max_tokens // rows, 2)),
        )
        size = (columns * patch_px, rows * patch_px)
        method = cv2.INTER_AREA if size[0] <= width else cv2.INTER_LINEAR
        resized = cv2.resize(rgb, size, interpolation=method)
        return np.asarray(resized, np.uint8), (size[0] / width, size[1] / height)


@lru_cache(maxsize=4)
def load(name: str = "vit") -> VitDescriptor:
    """Load a descriptor by name: ``vit``, or ``vit:`` with a weights file or a transformers model.

    A weights file has the adaptation, and the small backbone or the name of another one. A model of
    transformers is used without adaptation, the baseline of the paper.

    Raises:
        WeightsError: Missing or damaged file, another architecture, or the backbone cannot be
            loaded.
    """
    if not name.startswith(PREFIX):
        return descriptor_from_file(WEIGHTS, name=name)
    target = name.removeprefix(PREFIX)
    if target.endswith(".safetensors"):
        return descriptor_from_file(Path(target), name=name)
    if target in {"", SMALL}:
        raise WeightsError("vit: expected a path or name after the colon, got none")
    matcher = VitMatcher(VitConfig(backbone=target, layers=0, heads=1))
    return VitDescriptor(name, matcher, compute=select_compute())


def descriptor_from_file(path: Path, *, name: str = "vit") -> VitDescriptor:
    """Load a descriptor from a file of ``vit_weights.save_network``.

    Raises:
        WeightsError: See ``load``.
    """
    network, version = read_network(path)
    return VitDescriptor(name, network, version=version, compute=select_compute())


def sample_rows(features: Tensor, xy: ArrayF32, patch_px: float) -> ArrayF32:
    """Sample unit rows (K, E) of a map (E, h, w) at pixels (K, 2) of the input."""
    height, width = features.shape[1:]
    cell = (xy + 0.5) / patch_px - 0.5
    grid = torch.from_numpy(cell / (max(width - 1, 1), max(height - 1, 1)) * 2 - 1).float()
    values = functional.grid_sample(
        features[None], grid[None, :, None], padding_mode="border", align_corners=True
    )
    rows: ArrayF32 = functional.normalize(values[0, :, :, 0].T, dim=1).numpy()
    return rows


def _to_rgb(image: npt.NDArray[Any]) -> ImageU8:
    """Convert a grey, RGB or RGBA image of any bit depth to (H, W, 3) uint8."""
    pixels = to_u8(image)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])


def _to_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    """Convert pixels of the image to pixels of the network input, with centres at integers."""
    return np.asarray((xy + 0.5) * np.array(scale) - 0.5, np.float32)
