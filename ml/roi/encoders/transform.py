"""Preprocessing of images for a published network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from ml.errors import BadInputError
from ml.networks.vit_adapter import IMAGENET_MEAN, IMAGENET_STD
from ml.types import ArrayF32, ImageU8

_FILTERS = {filter_.name.lower(): filter_ for filter_ in Image.Resampling}
_CONVNEXT_WARPS_FROM = 384
"""From this side on a ConvNeXt processor resizes without cropping."""


@dataclass(frozen=True, slots=True)
class ImageTransform:
    """Resize the shorter side, crop the centre, scale to [0, 1], standardise.

    Resizes with Pillow, which low-passes with every filter, as in training of the networks.
    """

    resize_px: int  # shorter side after resizing
    crop_px: int  # side of the central crop
    interpolation: str = "bicubic"  # a name of PIL.Image.Resampling, in lower case
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        """Check the values."""
        if self.interpolation not in _FILTERS:
            choices = ", ".join(_FILTERS)
            raise BadInputError(f"interpolation: expected {choices}, got {self.interpolation!r}")
        if not 0 < self.crop_px <= self.resize_px:
            raise BadInputError(
                f"crop: expected 1 to {self.resize_px} px (the resized side), got {self.crop_px}"
            )

    def apply(self, patch: ImageU8) -> ArrayF32:
        """Transform (H, W, 3) uint8 RGB to (3, crop_px, crop_px) float32."""
        height, width = patch.shape[:2]
        short = min(height, width)
        if short != self.resize_px:
            height, width = (side * self.resize_px // short for side in (height, width))
            image = Image.fromarray(patch).resize((width, height), _FILTERS[self.interpolation])
            patch = np.asarray(image)
        top, left = round((height - self.crop_px) / 2), round((width - self.crop_px) / 2)
        square = patch[top : top + self.crop_px, left : left + self.crop_px]
        unit = square.astype(np.float32) / np.float32(255)
        standard = (unit - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(standard.transpose(2, 0, 1), np.float32)


def transform_of_processor(values: Mapping[str, Any]) -> ImageTransform:
    """Transform of a ``preprocessor_config.json`` of transformers.

    Raises:
        BadInputError: The size is missing or invalid.
    """
    crop = _side(values.get("crop_size")) if values.get("do_center_crop") else None
    size = _side(values.get("size")) if values.get("do_resize", True) else crop
    if "crop_pct" in values and size is not None and size < _CONVNEXT_WARPS_FROM:
        crop, size = size, int(size / float(values["crop_pct"]))
    if size is None:
        raise BadInputError("preprocessor_config.json: names no size")
    if (
        not values.get("do_rescale", True)
        or abs(values.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-3
    ):
        raise BadInputError("preprocessor_config.json: expected pixels scaled by 1/255")
    plain = not values.get("do_normalize", True)
    return ImageTransform(
        resize_px=size,
        crop_px=crop or size,
        interpolation=Image.Resampling(values.get("resample", 2)).name.lower(),
        mean=(0.0, 0.0, 0.0) if plain else _three(values["image_mean"]),
        std=(1.0, 1.0, 1.0) if plain else _three(values["image_std"]),
    )


def transform_of_timm(values: Mapping[str, Any]) -> ImageTransform:
    """Transform of the data configuration of a ``timm`` model."""
    crop = int(values["input_size"][-1])
    return ImageTransform(
        resize_px=int(crop / float(values["crop_pct"])),
        crop_px=crop,
        interpolation=str(values["interpolation"]),
        mean=_three(values["mean"]),
        std=_three(values["std"]),
    )


def _three(values: Any) -> tuple[float, float, float]:
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def _side(size: Any) -> int | None:
    """Side of a size in transformers: a number or an object."""
    if isinstance(size, Mapping):
        size = size.get("shortest_edge") or size.get("height")
    return None if size is None else int(size)
