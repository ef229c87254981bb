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
from ml.networks.device import REFERENCE, Compute, chosen_compute
from ml.networks.vit_adapter import SMALL, VitConfig, VitMatcher
from ml.types import ArrayF32, ImageU8, Keypoints

WEIGHTS = WEIGHTS_FOLDER / "vit.safetensors"
PREFIX = "vit:"
"""``vit:PATH_OR_NAME``: a weights file of ours, or a transformers model without adaptation."""

_MIN_PATCHES = 2
"""Along the short side of an image, however long the other is: between them is interpolated."""


class VitDescriptor:
    """Descriptors of an adapted vision transformer.

    Attributes:
        name, dim, detector, ratio: see ``ml.keypoints.Descriptor``. AKAZE's points repeat better
            here than SIFT's: 484 against 313 matches on frames 3 and 4 of sinus-4584, with more of
            them right at every ratio.
        network: the model, in evaluation mode.
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
            image: (H, W[, 1|3|4]) of any size and depth; it is scaled so that the tokens stay
                bounded. xy: (N, 2) pixels. response: (N,), unused.
        Returns:
            (N, dim) float32, unit length; zero rows for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, response is not (N,), or no image.
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
        """As ``describe``: the transformer sees the surroundings, scale and angle are not used."""
        return self.describe(image, keypoints.xy, keypoints.response)

    def describe_map(self, image: npt.NDArray[Any]) -> tuple[Tensor, tuple[float, float]]:
        """The whole map of an image.

        Returns:
            features: (E, h, w), unit length along E.
            scale: pixels of the network's input per pixel of the image, along x and y.
        """
        pixels, scale = self.network_input(image)
        batch = (
            torch.from_numpy(pixels).to(self.compute.device).permute(2, 0, 1)[None].float().div(255)
        )
        with torch.inference_mode(), self.compute.precision():
            features = self.network(batch)[0].float().cpu()
        return torch.nan_to_num(features), scale

    def network_input(self, image: npt.NDArray[Any]) -> tuple[ImageU8, tuple[float, float]]:
        """The image as the network sees it.

        Returns:
            pixels: (h * P, w * P, 3) RGB uint8 of at most ``max_tokens`` patches.
            scale: as of ``describe_map``.
        """
        rgb = _to_rgb(image)
        height, width = rgb.shape[:2]
        patch_px, most = self.network.patch_px, self.network.config.max_tokens
        shrink = min(1.0, float(np.sqrt(most * patch_px**2 / (height * width))))
        # a very long image keeps two patches on its short side, and no more than ``most`` in all
        rows = max(int(height * shrink / patch_px), _MIN_PATCHES)
        columns = max(int(width * shrink / patch_px), _MIN_PATCHES)
        rows, columns = min(rows, max(most // columns, 2)), min(columns, max(most // rows, 2))
        size = (columns * patch_px, rows * patch_px)
        method = cv2.INTER_AREA if size[0] <= width else cv2.INTER_LINEAR
        resized = cv2.resize(rgb, size, interpolation=method)
        return np.asarray(resized, np.uint8), (size[0] / width, size[1] / height)


@lru_cache(maxsize=4)
def load(name: str = "vit") -> VitDescriptor:
    """The descriptor by name: ``vit``, or ``vit:`` with a weights file or a transformers model.

    A file of ours holds the adaptation and, for the small backbone, the backbone too; for a named
    backbone it holds the name. A transformers model alone gives its own features: the paper's
    baseline.

    Raises:
        WeightsError: missing, damaged, of another architecture, or the backbone cannot be loaded.
    """
    if not name.startswith(PREFIX):
        return descriptor_from_file(WEIGHTS, name=name)
    target = name.removeprefix(PREFIX)
    if target.endswith(".safetensors"):
        return descriptor_from_file(Path(target), name=name)
    if target in {"", SMALL}:
        raise WeightsError("vit: expected a path or name after the colon, got none")
    matcher = VitMatcher(VitConfig(backbone=target, layers=0, heads=1))
    return VitDescriptor(name, matcher, compute=chosen_compute())


def descriptor_from_file(path: Path, *, name: str = "vit") -> VitDescriptor:
    """A descriptor from a file of ``vit_weights.save_network``.

    Raises:
        WeightsError: see ``load``.
    """
    network, version = read_network(path)
    return VitDescriptor(name, network, version=version, compute=chosen_compute())


def sample_rows(features: Tensor, xy: ArrayF32, patch_px: float) -> ArrayF32:
    """(K, E) unit rows of an (E, h, w) map at (K, 2) pixels of the input."""
    height, width = features.shape[1:]
    cell = (xy + 0.5) / patch_px - 0.5
    grid = torch.from_numpy(cell / (max(width - 1, 1), max(height - 1, 1)) * 2 - 1).float()
    values = functional.grid_sample(
        features[None], grid[None, :, None], padding_mode="border", align_corners=True
    )
    rows: ArrayF32 = functional.normalize(values[0, :, :, 0].T, dim=1).numpy()
    return rows


def _to_rgb(image: npt.NDArray[Any]) -> ImageU8:
    """(H, W, 3) uint8 of a grey, RGB or RGBA image of any bit depth."""
    pixels = to_u8(image)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])


def _to_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    """Pixels of the image to pixels of the network's input, centres at whole numbers."""
    return np.asarray((xy + 0.5) * np.array(scale) - 0.5, np.float32)
