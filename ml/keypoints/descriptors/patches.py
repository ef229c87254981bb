"""Sampling of patches around key points."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from ml.errors import ShapeError
from ml.types import ArrayF32, ImageU8

CHUNK = 512
"""Patches per chunk: 32 MB at 128 px."""


def cut_patches(
    grey: ImageU8,
    xy: ArrayF32,
    *,
    side_px: int,
    support_px: float | ArrayF32,
    angle_deg: ArrayF32 | None = None,
    device: torch.device | None = None,
) -> torch.Tensor:
    """Sample a rotated square window around each key point.

    Windows are read from an image pyramid, at the level where a pixel of the patch covers one to
    two pixels, to avoid aliasing. The image is reflected at its border.

    Args:
        grey: (H, W) uint8.
        xy: (N, 2) float32 pixels.
        side_px: Side S of the patches.
        support_px: Side of the windows in pixels of the image, a number or (N,).
        angle_deg: (N,) direction of the x axis of the patches, from x right towards y down; None
            for upright patches.
        device: Device of sampling; None for the CPU.
    Returns:
        (N, 1, S, S) float32 in [0, 1].
    Raises:
        ShapeError: ``angle_deg`` is not (N,), or ``support_px`` neither a number nor (N,).
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
            patches[part] = _sample(plane, ((windows + 0.5) / 2.0**current).to(device))
        if min(plane.shape[2:]) >= 2:
            plane = functional.avg_pool2d(plane, 2, ceil_mode=True, count_include_pad=False)
    return patches


def _windows(xy: ArrayF32, support_px: ArrayF32, angle_deg: ArrayF32, side_px: int) -> torch.Tensor:
    """Image position (n, S, S, 2) of each pixel of the patches."""
    step = (torch.arange(side_px, dtype=torch.float32) + 0.5) / side_px - 0.5
    v, u = torch.meshgrid(step, step, indexing="ij")
    angle_rad = torch.from_numpy(np.radians(angle_deg)).float()[:, None, None]
    size = torch.from_numpy(support_px.copy()).float()[:, None, None]
    centre = torch.from_numpy(np.ascontiguousarray(xy)).float()
    x = centre[:, 0, None, None] + size * (torch.cos(angle_rad) * u - torch.sin(angle_rad) * v)
    y = centre[:, 1, None, None] + size * (torch.sin(angle_rad) * u + torch.cos(angle_rad) * v)
    return torch.stack([x, y], dim=-1)


def _sample(plane: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Bilinear samples (n, 1, S, S) of the plane (1, 1, H, W).

    ``positions`` (n, S, S, 2) are relative to the corner of the plane, so that they scale with the
    pyramid.
    """
    n, side = positions.shape[:2]
    height, width = plane.shape[2:]
    grid = positions * (2.0 / torch.tensor([width, height], device=positions.device)) - 1.0
    sampled = functional.grid_sample(
        plane,
        grid.reshape(1, n * side, side, 2),
        mode="bilinear",
        padding_mode="reflection",
        align_corners=False,
    )
    return sampled.reshape(n, 1, side, side)
