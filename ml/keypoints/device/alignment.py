"""The alignment of ``verification.patch_alignment`` on a device, all points in one batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.networks.device import Compute, in_batches
from ml.types import ArrayF32, ArrayF64

POINTS = 16_384
"""Aligned at once: their patches and slopes of 17 x 17 samples are about 160 MB."""


class Aligned(NamedTuple):
    """As ``PatchAlignment``, before its last two are judged.

    Attributes:
        xy: (N, 2) float64. zncc, step_px: (N,) float64, the last step's length among them.
        spread: (N,) float64, trace of the inverse Hessian.
    """

    xy: ArrayF64
    zncc: ArrayF64
    step_px: ArrayF64
    spread: ArrayF64


class Setting(NamedTuple):
    """What all points share: see ``AlignConfig``, and the constants beside it.

    Attributes:
        grid, wide: (P, 2) and (Q, 2) offsets of a patch's samples, the second by one more a side.
        window: (P,) root of their weights.
    """

    grid: ArrayF32
    wide: ArrayF32
    window: ArrayF32
    side: int
    step_px: float
    iterations: int
    max_step_px: float
    done_px: float
    damping: tuple[float, float]
    no_contrast: float


def align_on(  # noqa: PLR0917
    compute: Compute,
    planes: tuple[ArrayF32, ArrayF32],
    xy_a: ArrayF64,
    xy_b: ArrayF64,
    inverse_map: ArrayF64,
    setting: Setting,
) -> Aligned:
    """Move each of N points of b until its patch fits that of a.

    Values between pixels are exact here; OpenCV rounds to a thirty-second of a pixel. Positions
    agree to a twentieth of a pixel where the patch holds texture.

    Args:
        planes: (H, W) float32 of a and of b. xy_a, xy_b: (N, 2).
        inverse_map: (N, 2, 2) from pixels of b to those of a.
    """
    if not len(xy_a):
        nothing = np.zeros(0)
        return Aligned(np.zeros((0, 2)), nothing, nothing, nothing)
    a, b = (compute.sent(np.ascontiguousarray(plane))[None, None] for plane in planes)

    def step(part: slice) -> Aligned:
        own_a, own_b, own_map = (
            compute.sent(rows[part].astype(np.float32)) for rows in (xy_a, xy_b, inverse_map)
        )
        with torch.inference_mode():
            return _aligned(a, b, own_a, own_b, own_map, setting)

    parts = list(in_batches(step, len(xy_a), POINTS))
    return Aligned(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _aligned(  # noqa: PLR0917
    a: Tensor, b: Tensor, xy_a: Tensor, xy_b: Tensor, inverse_map: Tensor, setting: Setting
) -> Aligned:
    grid, window = (torch.from_numpy(v).to(a.device) for v in (setting.grid, setting.window))
    template, slope = _template(a, xy_a, inverse_map, setting, window)
    hessian = slope @ slope.transpose(1, 2)
    trace = hessian.diagonal(dim1=1, dim2=2).sum(dim=1)
    damping = setting.damping[0] + setting.damping[1] * trace
    hessian = hessian + damping[:, None, None] * torch.eye(2, device=a.device)
    inverse = _inverse(hessian)
    at, live = xy_b.clone(), torch.ones(len(xy_b), dtype=torch.bool, device=a.device)
    zncc = torch.full((len(at),), -1.0, device=a.device)
    last = torch.full((len(at),), torch.inf, device=a.device)
    for _ in range(setting.iterations):
        patch = _normalised(_sampled(b, at[:, None] + grid), window, setting.no_contrast)
        zncc = torch.where(live, (patch * template).sum(dim=1), zncc)
        error = slope @ (patch - template)[:, :, None]
        move = (inverse @ error)[:, :, 0]
        length = move.norm(dim=1)
        move = move * (setting.max_step_px / length.clamp(min=1e-12)).clamp(max=1.0)[:, None]
        at = torch.where(live[:, None], at - move, at)
        last = torch.where(live, length, last)
        live = live & (length >= setting.done_px)
    spread = inverse.diagonal(dim1=1, dim2=2).sum(dim=1)
    return Aligned(*(found.double().cpu().numpy() for found in (at, zncc, last, spread)))


def _template(
    plane: Tensor, xy: Tensor, inverse_map: Tensor, setting: Setting, window: Tensor
) -> tuple[Tensor, Tensor]:
    """(N, P) normalised patches of a in b's axes, and their (N, 2, P) slopes."""
    wide = torch.from_numpy(setting.wide).to(plane.device)
    offsets = wide @ inverse_map.transpose(1, 2)
    patch = _sampled(plane, xy[:, None] + offsets).reshape(-1, setting.side, setting.side)
    dx = (patch[:, 1:-1, 2:] - patch[:, 1:-1, :-2]) / (2 * setting.step_px)
    dy = (patch[:, 2:, 1:-1] - patch[:, :-2, 1:-1]) / (2 * setting.step_px)
    inner = patch[:, 1:-1, 1:-1].flatten(1)
    slope = torch.stack([dx.flatten(1), dy.flatten(1)], dim=1)
    energy = window**2 / (window**2).sum()
    centred = (inner - (inner @ energy)[:, None]) * window
    length = centred.norm(dim=1).clamp(min=setting.no_contrast)
    template = centred / length[:, None]
    slope = (slope - (slope @ energy)[:, :, None]) * window / length[:, None, None]
    # what changes the contrast only is not motion
    return template, slope - (slope @ template[:, :, None]) * template[:, None]


def _normalised(patch: Tensor, window: Tensor, no_contrast: float) -> Tensor:
    energy = window**2 / (window**2).sum()
    centred = (patch - (patch @ energy)[:, None]) * window
    return centred / centred.norm(dim=1, keepdim=True).clamp(min=no_contrast)


def _sampled(plane: Tensor, at: Tensor) -> Tensor:
    """(N, P) bilinear values of a (1, 1, H, W) plane at (N, P, 2), the border repeated."""
    size = torch.tensor([plane.shape[3], plane.shape[2]], device=at.device)
    grid = 2.0 * at / (size - 1).clamp(min=1) - 1.0
    found = functional.grid_sample(
        plane, grid[None], mode="bilinear", padding_mode="border", align_corners=True
    )
    return found[0, 0]


def _inverse(matrix: Tensor) -> Tensor:
    """Of (N, 2, 2), written out: a batch of tiny matrices is no work for a solver."""
    a, b, c, d = matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 1, 0], matrix[:, 1, 1]
    turned = torch.stack([torch.stack([d, -b], dim=1), torch.stack([-c, a], dim=1)], dim=1)
    return turned / (a * d - b * c)[:, None, None]
