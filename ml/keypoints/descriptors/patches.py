"""Cut patches around key points: one gather for all of them, smoothed for the size they have."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from ml.errors import ShapeError
from ml.types import ArrayF32, ImageU8

CHUNK = 512
"""Patches sampled at once: 512 of 128 px are 32 MB."""


def cut_patches(
    grey: ImageU8,
    xy: ArrayF32,
    *,
    side_px: int,
    support_px: float | ArrayF32,
    angle_deg: ArrayF32 | None = None,
    device: torch.device | None = None,
) -> torch.Tensor:
    """Sample a square window around each key point, turned and scaled to one patch size.

    Windows are read from a pyramid of halved images, at the level where one patch pixel covers one
    to two of its pixels, so that large supports do not alias. Outside the image it is mirrored.

    Args:
        grey: (H, W) uint8.
        xy: (N, 2) float32 pixels.
        side_px: side S of the patches.
        support_px: side of the window in image pixels; one for all, or (N,).
        angle_deg: (N,) direction that becomes the patch's x axis (x to the right towards y down);
            None leaves all upright.
        device: where they are sampled; None for the processor.
    Returns:
        (N, 1, S, S) float32 in [0, 1].
    Raises:
        ShapeError: angle_deg is not (N,), or support_px neither one number nor (N,).
    """
    n = len(xy)
    support = np.asarray(support_px, np.float32)
    if support.shape not in ((), (n,)):
        actual = str(support.shape)
        raise ShapeError("support_px", expected=f"one number or ({n},)", actual=actual)
    support = np.broadcast_to(support, (n,))
    angle = np.zeros(n, np.float32) if angle_deg is None else np.asarray(angle_deg, np.float32)
    if angle.shape != (n,):
        raise ShapeError("angle_deg", expected=f"({n},)", actual=str(angle.shape))
    patches = torch.empty((n, 1, side_px, side_px), device=device)
    level = np.clip(np.floor(np.log2(np.maximum(support / side_px, 1.0))), 0, 5).astype(np.int64)
    plane = torch.from_numpy(np.ascontiguousarray(grey)).to(device).float()[None, None] / 255.0
    for current in range(int(level.max(initial=0)) + 1):
        rows = np.flatnonzero(level == current)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            windows = _windows(xy[part], support[part], angle[part], side_px)
            patches[part] = _sampled(plane, ((windows + 0.5) / 2.0**current).to(device))
        if min(plane.shape[2:]) >= 2:
            plane = functional.avg_pool2d(plane, 2, ceil_mode=True, count_include_pad=False)
    return patches


def _windows(xy: ArrayF32, support_px: ArrayF32, angle_deg: ArrayF32, side_px: int) -> torch.Tensor:
    """(n, S, S, 2): the image pixel under each patch pixel."""
    step = (torch.arange(side_px, dtype=torch.float32) + 0.5) / side_px - 0.5
    v, u = torch.meshgrid(step, step, indexing="ij")
    turn = torch.from_numpy(np.radians(angle_deg)).float()[:, None, None]
    size = torch.from_numpy(support_px.copy()).float()[:, None, None]
    centre = torch.from_numpy(np.ascontiguousarray(xy)).float()
    x = centre[:, 0, None, None] + size * (torch.cos(turn) * u - torch.sin(turn) * v)
    y = centre[:, 1, None, None] + size * (torch.sin(turn) * u + torch.cos(turn) * v)
    return torch.stack([x, y], dim=-1)


def _sampled(plane: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """(n, 1, S, S) bilinear samples of the (1, 1, H, W) plane, all windows in one call.

    ``edges`` (n, S, S, 2) count from the plane's corner, so that they halve with its levels.
    """
    n, side = edges.shape[:2]
    height, width = plane.shape[2:]
    grid = edges * (2.0 / torch.tensor([width, height], device=edges.device)) - 1.0
    sampled = functional.grid_sample(
        plane,
        grid.reshape(1, n * side, side, 2),
        mode="bilinear",
        padding_mode="reflection",
        align_corners=False,
    )
    return sampled.reshape(n, 1, side, side)
