"""What OpenCV does to images, done to tensors: warping, blurring, resizing of (1, C, h, w)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.types import ArrayF64


def warped(planes: Tensor, matrix: ArrayF64, size: tuple[int, int], *, border: str) -> Tensor:
    """Planes seen through the inverse of a homography.

    Values between pixels are exact; OpenCV rounds to a thirty-second of a pixel.

    Args:
        planes: (1, C, h, w). matrix: (3, 3), pixels of the result to those of the planes.
        size: width and height of the result.
        border: beyond the planes: "zeros", or "border" for the nearest value.
    """
    device, (height, width) = planes.device, planes.shape[2:]
    to_unit = torch.tensor(
        [[2 / max(width - 1, 1), 0, -1], [0, 2 / max(height - 1, 1), -1], [0, 0, 1]],
        dtype=torch.float64,
    )
    # float64 up to here: a canvas is thousands of pixels wide
    total = (to_unit @ torch.from_numpy(matrix)).to(torch.float32).to(device)
    v, u = torch.meshgrid(
        torch.arange(size[1], device=device, dtype=torch.float32),
        torch.arange(size[0], device=device, dtype=torch.float32),
        indexing="ij",
    )
    x, y, z = (row[0] * u + row[1] * v + row[2] for row in total)
    grid = torch.stack([x / z, y / z], dim=2)[None]
    return functional.grid_sample(
        planes, grid, mode="bilinear", padding_mode=border, align_corners=True
    )


def blurred(planes: Tensor, sigma: float) -> Tensor:
    """By a Gaussian of that deviation, mirrored beyond the rim."""
    radius = max(1, round(4 * sigma))
    at = torch.arange(-radius, radius + 1, device=planes.device, dtype=torch.float32)
    kernel = torch.exp(-0.5 * (at / sigma) ** 2)
    kernel = kernel / kernel.sum()
    channels = planes.shape[1]
    mode = "reflect" if radius < min(planes.shape[2:]) else "replicate"
    for shape, pad in (
        ((1, -1), (radius, radius, 0, 0)),
        ((-1, 1), (0, 0, radius, radius)),
    ):
        weight = kernel.reshape(1, 1, *shape).repeat(channels, 1, 1, 1)
        planes = functional.conv2d(functional.pad(planes, pad, mode=mode), weight, groups=channels)
    return planes


def shrunk(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """Means over areas; ``size``: width and height."""
    return functional.interpolate(planes, size=(size[1], size[0]), mode="area")


def grown(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear; ``size``: width and height."""
    return functional.interpolate(
        planes, size=(size[1], size[0]), mode="bilinear", align_corners=False
    )


def eroded(planes: Tensor) -> Tensor:
    """The least of 3 x 3 pixels."""
    return -functional.max_pool2d(-planes, 3, stride=1, padding=1)
