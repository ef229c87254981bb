"""What JPEG does to pictures, on the device: 4:2:0 chroma and the standard quantisation."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import ShapeError

BLOCK = 8  # side of JPEG's blocks, px
# fmt: off
_LUMA = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)
_CHROMA = (
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
    *(99,) * 32,
)
# fmt: on
"""Tables K.1 and K.2 of ITU-T T.81."""
_YCC = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))
"""From RGB, JFIF 1.02."""


def compressed(images: Tensor, quality: Tensor) -> Tensor:
    """Images as they come back from a JPEG file.

    Args:
        images: (N, 3, H, W) float32 RGB in 0 to 255; H and W multiples of 16.
        quality: (N,) 1 to 100, as libjpeg counts.
    Returns:
        (N, 3, H, W) float32 in 0 to 255.
    Raises:
        ShapeError: other sides.
    """
    if images.shape[2] % (2 * BLOCK) or images.shape[3] % (2 * BLOCK):
        expected = f"sides in multiples of {2 * BLOCK}"
        raise ShapeError("images", expected=expected, actual=str(tuple(images.shape)))
    if not len(images):
        return images
    to_ycc = torch.tensor(_YCC, device=images.device)
    ycc = torch.einsum("ij,njhw->nihw", to_ycc, images)
    luma = _quantised(ycc[:, :1] - 128, _table(_LUMA, quality)) + 128
    small = functional.avg_pool2d(ycc[:, 1:], 2)
    chroma = _quantised(small, _table(_CHROMA, quality))
    chroma = functional.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False)
    back = torch.linalg.inv(to_ycc)
    rgb = torch.einsum("ij,njhw->nihw", back, torch.cat([luma, chroma], dim=1))
    return rgb.clamp(0, 255)


def grey_compressed(images: Tensor, quality: Tensor) -> Tensor:
    """(N, 1, H, W) grey in 0 to 255 as it comes back from a JPEG file, whatever the sides."""
    height, width = images.shape[2:]
    pads = (0, -width % BLOCK, 0, -height % BLOCK)
    whole = functional.pad(images, pads, mode="replicate")
    found = _quantised(whole - 128, _table(_LUMA, quality)) + 128
    return found[:, :, :height, :width].round().clamp(0, 255)


def _table(base: tuple[int, ...], quality: Tensor) -> Tensor:
    """(N, 1, 1, 1, 8, 8) steps of quantisation, scaled as libjpeg does."""
    quality = quality.float()
    percent = torch.where(quality < 50, 5000 / quality, 200 - 2 * quality).floor()
    table = torch.tensor(base, device=quality.device, dtype=torch.float32).reshape(BLOCK, BLOCK)
    scaled = ((table * percent[:, None, None] + 50) / 100).floor().clamp(1, 255)
    return scaled[:, None, None, None]


def _quantised(planes: Tensor, table: Tensor) -> Tensor:
    """(N, C, H, W) through the rounded coefficients of its 8 x 8 blocks."""
    n, c, height, width = planes.shape
    shape = (n, c, height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    blocks = planes.reshape(shape).transpose(3, 4)
    cosines = _cosines(planes.device)
    steps = (cosines @ blocks @ cosines.T / table).round() * table
    return (cosines.T @ steps @ cosines).transpose(3, 4).reshape(planes.shape)


@lru_cache(maxsize=2)
def _cosines(device: torch.device) -> Tensor:
    """(8, 8) orthonormal DCT-II: row k over the samples of frequency k."""
    k = torch.arange(BLOCK, dtype=torch.float64)
    rows = torch.cos(math.pi / BLOCK * (k[None] + 0.5) * k[:, None]) * math.sqrt(2 / BLOCK)
    rows[0] /= math.sqrt(2)
    return rows.float().to(device)
