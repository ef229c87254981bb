"""Depth of a still: by a DPT head, from a file, or a smooth surface drawn at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from ml.errors import BadInputError, CorruptFileError, WeightsError
from ml.extras import require_extra
from ml.files import NO_ARRAYS
from ml.networks.vit_adapter import IMAGENET_MEAN, IMAGENET_STD
from ml.types import ArrayF64, ImageU8

_FLOOR = 0.05
"""Least depth, as a share of the median: estimates may touch zero."""


def synthetic_depth(
    rng: np.random.Generator, shape: tuple[int, int], *, relief: float = 0.35, waves: int = 4
) -> ArrayF64:
    """Draw a smooth surface: a tilted plane with a low-frequency relief, median 1.

    The correspondence of a view made from it is exact; only the parallax is invented.

    Args:
        relief: typical deviation of the surface from its median (log depth), at most twice that.
        waves: finest period, as a count over the longer side.
    Returns:
        (H, W) float64, positive.
    """
    height, width = shape
    coarse = rng.normal(0, 1, (waves + 1, waves + 1))
    surface = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    surface = surface + rng.normal(0, 1) * x + rng.normal(0, 1) * y
    surface = (surface - np.median(surface)) / max(float(np.abs(surface).max()), 1e-9)
    result: ArrayF64 = np.exp(relief * surface)
    return result


def scaled_depth(depth: ArrayF64, *, relief: float = 1.0) -> ArrayF64:
    """Scale a depth to median 1, and its relief (log depth) by ``relief``.

    Raises:
        CorruptFileError: not a plane of finite numbers, or without a positive median.
    Source: dinov2-adaptation-endoscopic-matching, section III-B ("random scaling factor").
    """
    values = np.asarray(depth, np.float64)
    if values.ndim != 2 or not np.isfinite(values).all() or not np.median(values) > 0:
        raise CorruptFileError("depth: expected (H, W) finite values with a positive median")
    relative = np.maximum(values / np.median(values), _FLOOR)
    return np.asarray(relative**relief, np.float64)


def folder_depth(folder: Path, stem: str, shape: tuple[int, int]) -> ArrayF64:
    """Read the depth of an image from ``<stem>.npy`` in a folder, resized to ``shape``.

    Raises:
        BadInputError: there is none.
        CorruptFileError: it is not a depth.
    """
    path = folder / f"{stem}.npy"
    try:
        values = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise BadInputError(f"{path.name}: expected in the folder of depths") from None
    except NO_ARRAYS as error:
        raise CorruptFileError(f"{path.name}: expected an (H, W) array") from error
    return _resize(scaled_depth(values), shape)


class DptDepth:
    """Depth by a DPT head on its ViT, through ``transformers``, from a folder or hub name.

    Source: dinov2-adaptation-endoscopic-matching, section III-B; Ranftl et al. 2021.
    """

    def __init__(self, name: str, *, inverse: bool = False) -> None:
        """Load it.

        Args:
            inverse: the head gives inverse depth (MiDaS-trained heads do; those on DINOv2 that were
                trained on indoor depth do not).
        Raises:
            WeightsError: no such model.
            MissingDependencyError: transformers is not installed.
        """
        require_extra("transformers", extra="hub")
        from transformers import DPTForDepthEstimation

        try:
            model: Any = DPTForDepthEstimation.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise WeightsError(
                "depth model: expected a folder or hub name of a DPT model,"
                f" {name.rstrip('/').rsplit('/', 1)[-1]!r} cannot be loaded"
            ) from error
        self.model, self.inverse = model.eval(), inverse
        backbone = getattr(model.config, "backbone_config", None)
        self.patch_px = int(getattr(backbone, "patch_size", None) or model.config.patch_size)
        self.side_px = int(getattr(backbone, "image_size", None) or model.config.image_size)

    def __call__(self, image: ImageU8) -> ArrayF64:
        """(H, W, 3) RGB uint8 to (H, W) float64 depth, median 1."""
        height, width = image.shape[:2]
        side = max(self.side_px // self.patch_px, 1) * self.patch_px
        small = cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA)
        shifted = small.astype(np.float32) / 255 - IMAGENET_MEAN
        pixels = shifted / np.asarray(IMAGENET_STD, np.float32)
        batch = torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32))
        with torch.inference_mode():
            depth = self.model(pixel_values=batch).predicted_depth[0].double().numpy()
        values = 1 / np.maximum(depth, _FLOOR * max(float(np.median(depth)), 1e-6))
        return _resize(scaled_depth(values if self.inverse else depth), (height, width))


def _resize(depth: ArrayF64, shape: tuple[int, int]) -> ArrayF64:
    if depth.shape == shape:
        return depth
    return np.asarray(
        cv2.resize(depth, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), np.float64
    )
