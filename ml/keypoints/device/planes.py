"""What OpenCV does to images, done to tensors (N, C, h, w): warping, filters, resizing, CLAHE."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.types import ArrayF64


def warped(
    planes: Tensor,
    matrix: ArrayF64,
    size: tuple[int, int],
    *,
    border: str,
    mode: str = "bilinear",
) -> Tensor:
    """Planes seen through the inverse of a homography.

    Values between pixels are exact; OpenCV rounds to a thirty-second of a pixel.

    Args:
        planes: (N, C, h, w). matrix: (3, 3) or (N, 3, 3), pixels of the result to those of the
            planes.
        size: width and height of the result.
        border: beyond the planes: "zeros", "border" for the nearest value, or "reflection" at the
            middle of the outermost pixels.
        mode: "bilinear" or "nearest".
    """
    device, (height, width) = planes.device, planes.shape[2:]
    to_unit = torch.tensor(
        [[2 / max(width - 1, 1), 0, -1], [0, 2 / max(height - 1, 1), -1], [0, 0, 1]],
        dtype=torch.float64,
    )
    # float64 up to here: a canvas is thousands of pixels wide
    total = (to_unit @ torch.from_numpy(matrix)).to(torch.float32).to(device).reshape(-1, 3, 3)
    v, u = torch.meshgrid(
        torch.arange(size[1], device=device, dtype=torch.float32),
        torch.arange(size[0], device=device, dtype=torch.float32),
        indexing="ij",
    )
    rows = total[:, :, :, None, None]
    x, y, z = (row[:, 0] * u + row[:, 1] * v + row[:, 2] for row in rows.unbind(1))
    grid = torch.stack([x / z, y / z], dim=3).expand(len(planes), -1, -1, -1)
    return functional.grid_sample(planes, grid, mode=mode, padding_mode=border, align_corners=True)


def looked_up(
    planes: Tensor, xy: Tensor, *, border: str = "border", mode: str = "bilinear"
) -> Tensor:
    """(N, C, h', w') values of (N, C, h, w) planes at (N, h', w', 2) pixels, as by ``cv2.remap``;
    ``border`` and ``mode`` as in ``warped``."""
    size = torch.tensor([planes.shape[3] - 1, planes.shape[2] - 1], device=planes.device)
    grid = 2 * xy / size.clamp(min=1) - 1
    return functional.grid_sample(planes, grid, mode=mode, padding_mode=border, align_corners=True)


def filtered(planes: Tensor, kernels: Tensor) -> Tensor:
    """(N, C, h, w), each by its own (k, k) of (N, k, k), k odd, mirrored beyond the rim."""
    count, channels = planes.shape[:2]
    radius = kernels.shape[-1] // 2
    flat = functional.pad(planes.flatten(0, 1)[None], (radius,) * 4, mode="reflect")
    weight = kernels.repeat_interleave(channels, dim=0)[:, None].to(planes.dtype)
    found = functional.conv2d(flat, weight, groups=count * channels)
    return found[0].reshape(planes.shape)


def gaussians(sigma: Tensor, radius: int) -> Tensor:
    """(N, k, k) kernels of (N,) deviations; 0 leaves an image as it is."""
    at = torch.arange(-radius, radius + 1, device=sigma.device, dtype=torch.float32)
    rows = torch.exp(-0.5 * (at / sigma.clamp(min=1e-3)[:, None]) ** 2)
    rows = rows / rows.sum(dim=1, keepdim=True)
    return rows[:, :, None] * rows[:, None]


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


def equalised(grey: Tensor, *, clip_limit: float = 2.0, grid: int = 8) -> Tensor:
    """CLAHE of a (1, 1, h, w) plane of whole numbers in 0 to 255, as OpenCV does it."""
    height, width = grey.shape[2:]
    below, right = (grid - height % grid, grid - width % grid)
    if height % grid == 0 and width % grid == 0:
        below = right = 0
    padded = functional.pad(grey, (0, right, 0, below), mode="reflect")[0, 0].long()
    rows, columns = padded.shape[0] // grid, padded.shape[1] // grid
    tiles = padded.reshape(grid, rows, grid, columns).transpose(1, 2).reshape(grid**2, -1)
    counts = torch.zeros(grid**2, 256, dtype=torch.long, device=grey.device)
    counts.scatter_add_(1, tiles, torch.ones_like(tiles))
    limit = max(int(clip_limit * rows * columns / 256), 1)
    spare = (counts - limit).clamp(min=0).sum(dim=1)
    counts = counts.clamp(max=limit) + (spare // 256)[:, None]
    left = spare % 256  # shared out evenly over the levels, from black on
    step = (256 // left.clamp(min=1)).clamp(min=1)[:, None]
    level = torch.arange(256, device=grey.device)[None]
    counts = counts + ((level % step == 0) & (level // step < left[:, None])).long()
    table = (counts.cumsum(dim=1) * (255.0 / (rows * columns))).round().clamp(0, 255)
    return _between(table.reshape(grid, grid, 256), grey, (rows, columns))


def _between(table: Tensor, grey: Tensor, tile: tuple[int, int]) -> Tensor:
    """Each pixel by the tables of the four tiles around it."""
    grid, value = len(table), grey[0, 0].long()
    low, high, share = [], [], []
    for side, length in zip(grey.shape[2:], tile, strict=True):
        at = torch.arange(side, device=grey.device) / length - 0.5
        first = at.floor().long()
        low.append(first.clamp(0, grid - 1))
        high.append((first + 1).clamp(0, grid - 1))
        share.append(at - first)
    down, across = share[0][:, None], share[1][None]

    def seen(row: Tensor, column: Tensor) -> Tensor:
        return table[row[:, None], column[None], value]

    upper = seen(low[0], low[1]) * (1 - across) + seen(low[0], high[1]) * across
    lower = seen(high[0], low[1]) * (1 - across) + seen(high[0], high[1]) * across
    return (upper * (1 - down) + lower * down).round()[None, None]
