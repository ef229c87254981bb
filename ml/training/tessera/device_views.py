"""The views of ``views`` made on the device of the network, and the polar patches of key points.

A still lies on the device in grey; a view's homography and everything that happens to it are a few
numbers, drawn from the same distributions. Without its random parts a view agrees with OpenCV's to
a grey level, and polar patches to a hundredth of their deviation.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.keypoints.descriptors.polar import (
    DARK_LEVEL,
    LEAST_INSIDE,
    MAX_DEVIATIONS,
    NOISE_LEVEL,
    RIM_PX,
    PolarGrid,
)
from ml.keypoints.device.planes import blurred, filtered, looked_up, shrunk, warped
from ml.networks.device import Compute
from ml.training.common.device.jpeg import grey_compressed
from ml.training.tessera.views import TesseraViewConfig, motion_kernel
from ml.types import ArrayF32, ArrayF64, ImageU8

FLOOD_STEPS = 32
"""Steps of the flood of the dark surround between two checks whether it still grows."""

POINTS = 128
"""Patches sampled at once: it bounds the memory."""


class DeviceStillViews:
    """Makes views of stills on a device; images are (1, 1, H, W) float32, whole numbers to 255."""

    def __init__(self, compute: Compute, config: TesseraViewConfig) -> None:
        self._compute, self._config = compute, config

    def image(self, grey: ImageU8) -> Tensor:
        """The still on the device."""
        return self._compute.sent(np.ascontiguousarray(grey))[None, None].float()

    def warped(
        self, image: Tensor, H_view_from_still: ArrayF64, rng: np.random.Generator
    ) -> Tensor:
        """See ``views.warped``."""
        border = "zeros" if rng.random() < self._config.black_border else "reflection"
        back = np.asarray(np.linalg.inv(H_view_from_still), np.float64)
        size = (image.shape[3], image.shape[2])
        return warped(image, back, size, border=border).round().clamp(0, 255)

    def degraded(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        """See ``views.degraded``: the same order, another draw."""
        config = self._config
        noise = torch.Generator(image.device).manual_seed(int(rng.integers(1 << 62)))
        surround = blurred(image.clamp(max=12) / 12, 2.0)
        if rng.random() < config.light:
            image = image * self._light(image, rng)
        if rng.random() < config.haze:
            share = rng.uniform(0.1, 0.5) * self._clouds(image, rng)
            image = image * (1 - share) + share * rng.uniform(110, 220) * surround
        if rng.random() < config.spots:
            image = torch.maximum(image, self._spots(image, rng) * surround)
        image = self._blurred(image, rng)
        image = 255 * (image.clamp(0, 255) / 255) ** float(np.exp(rng.uniform(-0.4, 0.4)))
        image = image * float(np.exp(rng.uniform(-0.4, 0.3))) + rng.uniform(-6, 6) * surround
        if rng.random() < config.rim:
            image = image * self._rim(image, rng)
        if rng.random() < config.noise:
            image = image + self._noise(image, rng, noise)
        image = (image + 0.5).clamp(0, 255).floor()
        if rng.random() < config.jpeg:
            quality = torch.tensor([int(rng.integers(35, 95))], device=image.device)
            image = grey_compressed(image, quality)
        return image

    def patches(self, image: Tensor, xy: ArrayF32, grid: PolarGrid, zoom: ArrayF32) -> Tensor:
        """(N, 2, R, T) float16 on the device: see ``polar_patches``."""
        valid = visible_area_of(image)
        found = torch.zeros(len(xy), 2, grid.rings, grid.angles, device=image.device)
        if len(xy):
            last = [image.shape[3] - 1, image.shape[2] - 1]
            at = torch.from_numpy(np.clip(np.rint(xy), 0, last).astype(np.int64)).to(image.device)
            near = _dilated(valid, RIM_PX)[0, 0]
            is_inside = (near[at[:, 1], at[:, 0]] > 0).cpu().numpy()
            for rows, share in ((is_inside, valid), (~is_inside, torch.ones_like(valid))):
                if rows.any():
                    some = torch.from_numpy(rows).to(image.device)
                    found[some] = _all_sampled(image, share, xy[rows], zoom[rows], grid)
        return normalised_patches(found).half()

    def _light(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        height, width = image.shape[2:]
        x = torch.arange(width, device=image.device) / width - rng.uniform(-0.2, 1.2)
        y = torch.arange(height, device=image.device) / height - rng.uniform(-0.2, 1.2)
        return 1.2 / (1 + rng.uniform(0.2, 2.5) * (x * x + (y * y)[:, None]))

    def _clouds(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        coarse = torch.from_numpy(rng.random((1, 1, 4, 4)).astype(np.float32)).to(image.device)
        size = (image.shape[2], image.shape[3])
        grown = functional.interpolate(coarse, size, mode="bicubic", align_corners=False)
        return grown.clamp(0, 1)

    def _spots(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        """Ellipses with half axes of 1 to 14 px, soft at their edge."""
        height, width = image.shape[2:]
        count = int(rng.integers(2, 25))
        middle = rng.integers(0, (width, height), (count, 2))
        axes = rng.integers(1, (8, 15), (count, 2)) + 0.5
        plane = torch.zeros_like(image)
        row, column = torch.meshgrid(
            torch.arange(height, device=image.device),
            torch.arange(width, device=image.device),
            indexing="ij",
        )
        for (x, y), (a, b), turn in zip(middle, axes, rng.uniform(0, np.pi, count), strict=True):
            c, s = float(np.cos(turn)), float(np.sin(turn))
            along, across = c * (column - x) + s * (row - y), c * (row - y) - s * (column - x)
            plane[0, 0, (along / a) ** 2 + (across / b) ** 2 <= 1] = 255
        return blurred(plane, 1.0)

    def _blurred(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        config = self._config
        if rng.random() < config.motion:
            kernel = motion_kernel(rng.uniform(2, config.motion_px), rng.uniform(0, np.pi))
            image = filtered(image, torch.from_numpy(kernel).to(image.device)[None])
        if rng.random() < config.defocus:
            image = blurred(image, rng.uniform(0.4, config.defocus_px))
        return image

    def _rim(self, image: Tensor, rng: np.random.Generator) -> Tensor:
        height, width = image.shape[2:]
        side = min(height, width)
        at = np.array([width, height]) / 2 + rng.uniform(-0.15, 0.15, 2) * side
        radius = int(rng.uniform(0.45, 0.7) * side) + 0.5
        x = torch.arange(width, device=image.device) - int(at[0])
        y = torch.arange(height, device=image.device) - int(at[1])
        return ((x * x + (y * y)[:, None]) <= radius**2).float()

    def _noise(self, image: Tensor, rng: np.random.Generator, noise: torch.Generator) -> Tensor:
        drawn = torch.randn(image.shape, generator=noise, device=image.device)
        if rng.random() < 0.4:
            drawn = blurred(drawn, 0.8) * 2
        return drawn * rng.uniform(1, self._config.noise_level)


def visible_area_of(image: Tensor) -> Tensor:
    """(1, 1, H, W) 1 inside, 0 in the dark regions that touch the border: see ``visible_area``."""
    height, width = image.shape[2:]
    coarse = shrunk(image, (max(1, width // 2), max(1, height // 2))).round()
    dark = functional.pad((coarse < DARK_LEVEL).float(), (1, 1, 1, 1), value=1.0)
    outside = torch.zeros_like(dark)
    outside[:, :, 0] = outside[:, :, -1] = outside[:, :, :, 0] = outside[:, :, :, -1] = 1
    reached, cross = 0.0, torch.tensor([[0.0, 1, 0], [1, 1, 1], [0, 1, 0]], device=image.device)
    while (total := float(outside.sum())) != reached:
        reached = total
        for _ in range(FLOOD_STEPS):
            grown = functional.conv2d(outside, cross[None, None], padding=1)
            outside = (grown > 0).float() * dark
    outside = outside[:, :, 1:-1, 1:-1]
    inside = 1 - functional.max_pool2d(outside, 3, stride=1, padding=1)
    return functional.interpolate(inside, (height, width), mode="nearest")


def normalised_patches(patches: Tensor) -> Tensor:
    """(N, 2, R, T) of (grey times share, share): see ``polar.normalised``."""
    share = patches[:, 1]
    value = patches[:, 0] / share.clamp(min=LEAST_INSIDE)
    total = share.sum(dim=(1, 2), keepdim=True).clamp(min=LEAST_INSIDE)
    value = value - (value * share).sum(dim=(1, 2), keepdim=True) / total
    spread = ((value.square() * share).sum(dim=(1, 2), keepdim=True) / total).sqrt()
    value = (value / (spread + NOISE_LEVEL)).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    return torch.stack([value * share, share], dim=1)


def _all_sampled(
    image: Tensor, share: Tensor, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> Tensor:
    octave = np.rint(2.0 * np.log2(zoom)) / 2.0
    planes = [torch.cat([image * share, share], dim=1)]
    depth = int(grid.levels(2.0 ** float(octave.max())).max()) + 1
    while len(planes) < depth and min(planes[-1].shape[2:]) >= 4:
        planes.append(_halved(planes[-1]))
    found = torch.empty(len(xy), 2, grid.rings, grid.angles, device=image.device)
    for current in np.unique(octave):
        alike = np.flatnonzero(octave == current)
        levels = np.minimum(grid.levels(2.0 ** float(current)), len(planes) - 1)
        for start in range(0, len(alike), POINTS):
            rows = alike[start : start + POINTS]
            to = torch.from_numpy(rows).to(image.device)
            found[to] = _sampled(planes, levels, xy[rows], zoom[rows], grid)
    return found


def _sampled(
    planes: list[Tensor], levels: np.ndarray, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> Tensor:
    """(n, 2, R, T) bilinear samples; a level's pixel (0, 0) lies on the image's."""
    device = planes[0].device
    turn = torch.arange(grid.angles, device=device) * (2 * np.pi / grid.angles)
    circle = torch.stack([turn.cos(), turn.sin()], dim=1)
    radii = torch.from_numpy(grid.radii_px()).to(device)
    centre, factor = (torch.from_numpy(v.astype(np.float32)).to(device) for v in (xy, zoom))
    found = torch.empty(len(xy), 2, grid.rings, grid.angles, device=device)
    for level in np.unique(levels):
        rings = torch.from_numpy(np.flatnonzero(levels == level)).to(device)
        offsets = factor[:, None, None, None] * radii[rings][:, None, None] * circle
        at = (centre[:, None, None] + offsets) * 0.5 ** float(level)
        seen = looked_up(planes[level], at.reshape(1, len(xy), -1, 2), border="zeros")[0]
        found[:, :, rings] = seen.reshape(2, len(xy), len(rings), -1).transpose(0, 1)
    return found


def _halved(planes: Tensor) -> Tensor:
    """As ``cv2.pyrDown`` does it."""
    row = torch.tensor([1.0, 4, 6, 4, 1], device=planes.device) / 16
    kernel = (row[:, None] * row).expand(len(planes), -1, -1)
    return filtered(planes, kernel)[:, :, ::2, ::2]


def _dilated(valid: Tensor, radius: int) -> Tensor:
    """By a disc of that radius."""
    at = torch.arange(-radius, radius + 1, device=valid.device)
    disc = ((at * at)[:, None] + at * at <= radius**2).float()
    return (functional.conv2d(valid, disc[None, None], padding=radius) > 0.5).float()
