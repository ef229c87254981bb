"""The pairs of ``pairs`` made on the device of the network, those of a step together.

What is drawn is a few numbers a pair, as there; crops, depth, the moved camera's view and its look
are made on the device, in float32. Correspondences agree with the processor's to a hundredth of a
pixel except for pixels at an edge of the depth, where another surface may be seen first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.keypoints.device.planes import blurred, filtered, gaussians, looked_up, warped
from ml.networks.device import Compute
from ml.training.common.device.stills import KeptPlanes
from ml.training.vit.config import VitTrainConfig
from ml.training.vit.novel_view import NovelView
from ml.training.vit.pairs import (
    CONTEXT,
    NO_MOTION,
    LookConfig,
    MaskedStill,
    NovelViewPair,
    moved_camera,
    placed_crop,
)
from ml.types import ArrayBool, ArrayF64

NEAR = 1e-6
"""Points nearer to the camera's plane than this are behind it, as in ``novel_view``."""

STEPS, FLAT, EXACT_PX, TOLERANCE_PX = 2, 0.01, 0.25, 1.5
"""Of the way back from a pixel of the view to its source: see ``novel_view``."""

BLUR_PX = 5
"""Radius of a look's blur: four deviations of the widest."""


class DevicePairs:
    """Draws pairs by the configuration of a training; stills are uploaded once."""

    def __init__(self, config: VitTrainConfig, compute: Compute) -> None:
        self._config, self._kept = config, KeptPlanes(compute)

    def __call__(
        self, rng: np.random.Generator, stills: Sequence[MaskedStill], count: int
    ) -> tuple[list[NovelViewPair], Tensor]:
        """Pairs, and (2 * count, 3, crop, crop) in [0, 1] what the network sees of them, the
        sources first."""
        config = self._config
        margin = round(config.crop_px * CONTEXT)
        side, inner = config.crop_px + 2 * margin, slice(margin, margin + config.crop_px)
        motion = config.motion if config.novel_view else NO_MOTION
        drawn = [self._crop(rng, stills, side, margin) for _ in range(count)]
        image, depth = torch.cat([one[0] for one in drawn]), torch.cat([one[1] for one in drawn])
        distances = depth[:, 0, side // 2, side // 2].double().cpu().tolist()
        moves = [moved_camera(rng, distance, config.crop_px, motion) for distance in distances]
        cameras, motions = (np.stack([one[part] for one in moves]) for part in (0, 1))
        view = synthesised(image, depth[:, 0], cameras, motions).inner(inner)
        seen = view.image
        if config.photometric:
            noise = torch.Generator(seen.device).manual_seed(int(rng.integers(1 << 62)))
            looked = with_looks(rng, seen, config.look, noise)
            seen = torch.where(view.xy_s[..., 0].isfinite()[:, None], looked, 0.0)
        source = image[:, :, inner, inner]
        pixels = torch.cat([source, seen])
        valid = [one[2][inner, inner] for one in drawn]
        return _as_pairs(pixels, view, valid), pixels / 255

    def _crop(
        self, rng: np.random.Generator, stills: Sequence[MaskedStill], side: int, margin: int
    ) -> tuple[Tensor, Tensor, ArrayBool]:
        """(1, 3, side, side) of a still, its depth (1, 1, side, side), and where it is trusted."""
        config = self._config
        still = stills[int(rng.integers(len(stills)))]
        image = self._kept(still.image).permute(2, 0, 1)[None].float()
        place, mask = placed_crop(rng, still, side, margin, config.zoom_out)
        matrix: ArrayF64 = np.vstack([place, [0, 0, 1]])
        if place[0, 0] > 1.2:
            image = blurred(image, 0.4 * float(place[0, 0])).round()
        crop = warped(image, matrix, (side, side), border="zeros").round()
        if still.depth is None:
            relief = config.depth_relief
            return crop, drawn_depth(rng, side, relief, image.device), mask
        power = rng.uniform(*(config.motion if config.novel_view else NO_MOTION).depth_scale)
        known = self._kept(still.depth).float()[None, None]
        return crop, warped(known, matrix, (side, side), border="border") ** power, mask


def drawn_depth(
    rng: np.random.Generator, side: int, relief: float, device: torch.device, *, waves: int = 4
) -> Tensor:
    """(1, 1, side, side): see ``synthetic_depth``, of up to ``relief``."""
    relief = relief * rng.uniform(0, 1)
    coarse = torch.from_numpy(rng.normal(0, 1, (waves + 1, waves + 1)).astype(np.float32))
    surface = functional.interpolate(
        coarse.to(device)[None, None], (side, side), mode="bicubic", align_corners=False
    )
    along = torch.linspace(-1, 1, side, device=device)
    across, down = rng.normal(0, 1), rng.normal(0, 1)
    surface = surface + across * along + down * along[:, None]
    surface = (surface - surface.median()) / surface.abs().max().clamp(min=1e-9)
    return (relief * surface).exp()


class Synthesised(NamedTuple):
    """N novel views: see ``NovelView``; ``image`` is (N, 3, h, w), the others channels last."""

    image: Tensor
    xy_t: Tensor
    xy_s: Tensor
    visible: Tensor

    def inner(self, inner: slice) -> Synthesised:
        """The middle of the views, coordinates counted from there."""
        xy_t, xy_s = (xy[:, inner, inner] - inner.start for xy in (self.xy_t, self.xy_s))
        last = inner.stop - inner.start - 1
        inside = ((xy_t >= 0) & (xy_t <= last)).all(dim=3)
        visible = self.visible[:, inner, inner] & inside
        return Synthesised(self.image[:, :, inner, inner], xy_t, xy_s, visible)


def synthesised(image: Tensor, depth: Tensor, cameras: ArrayF64, motions: ArrayF64) -> Synthesised:
    """What moved cameras would see: ``synthesise_view`` for N stills.

    Args:
        image: (N, 3, h, w) in 0 to 255. depth: (N, h, w). cameras: (N, 3, 3). motions: (N, 4, 4).
    """
    count, height, width = depth.shape
    grid = _grid(height, width, image.device)
    turn = motions[:, :3, :3] @ np.linalg.inv(cameras)  # pixels to rays, turned
    ones = torch.ones_like(grid[..., :1])
    rays = torch.cat([grid, ones], dim=2).reshape(1, -1, 3) @ _tensor(turn, image).mT
    points = depth.reshape(count, -1, 1) * rays + _tensor(motions[:, None, :3, 3], image)
    z = points[..., 2]
    seen = points @ _tensor(cameras, image).mT
    xy = seen[..., :2] / torch.where(z > NEAR, seen[..., 2], 1.0)[..., None]
    xy = torch.where((z > NEAR)[..., None], xy, torch.nan)
    first = nearest_points(xy, z, (height, width))
    xy_t = xy.reshape(count, height, width, 2)
    xy_s = _source_positions(first, xy_t)
    covered = xy_s[..., 0].isfinite()
    found = looked_up(image, xy_s.nan_to_num(nan=0.0)).round()
    found = torch.where(covered[:, None], found, 0.0)
    return Synthesised(found, xy_t, xy_s, _round_trip_px(xy_t, xy_s) < TOLERANCE_PX)


def nearest_points(xy: Tensor, z: Tensor, shape: tuple[int, int]) -> Tensor:
    """(N, h, w): the row of (N, M, 2) seen at each pixel, -1 where none is; see ``z_buffer``."""
    height, width = shape
    known = xy.isfinite().all(dim=2)
    low = xy.nan_to_num(nan=-2.0).clamp(-2, max(shape) + 2).floor()
    whole, low = xy == low, low.long()
    cells = []
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x, y = low[..., 0] + dx, low[..., 1] + dy
        inside = known & (x >= 0) & (y >= 0) & (x < width) & (y < height)
        inside &= ~(bool(dx) & whole[..., 0]) & ~(bool(dy) & whole[..., 1])
        cells.append((torch.where(inside, y * width + x, 0), inside))
    depth = torch.full((len(xy), height * width), torch.inf, device=xy.device)
    for pixel, inside in cells:
        depth.scatter_reduce_(1, pixel, torch.where(inside, z, torch.inf), "amin")
    first = torch.full(depth.shape, -1, dtype=torch.long, device=xy.device)
    rows = torch.arange(xy.shape[1], device=xy.device)
    for pixel, inside in cells:
        is_first = inside & (z == depth.gather(1, pixel))
        first.scatter_reduce_(1, pixel, torch.where(is_first, rows, -1), "amax")
    return first.reshape(-1, height, width)


def with_looks(
    rng: np.random.Generator, images: Tensor, config: LookConfig, noise: torch.Generator
) -> Tensor:
    """(N, 3, h, w) each with a look of its own: see ``with_look``."""
    count = len(images)
    of_colour, of_contrast, of_light = (
        _tensor(np.exp(rng.uniform(-1, 1, (count, 1, 1, 1)) * most), images)
        for most in (config.saturation, config.contrast, config.brightness)
    )
    grey = images.mean(dim=1, keepdim=True)
    values = grey + (images - grey) * of_colour
    middle = values.mean(dim=(1, 2, 3), keepdim=True)
    values = (middle + (values - middle) * of_contrast) * of_light
    sigma = rng.uniform(0, 1, count) * config.blur_px
    sigma = np.where(sigma > 0.3, sigma, 0.0)
    values = filtered(values, gaussians(_tensor(sigma, images), BLUR_PX))
    drawn = torch.randn(values.shape, generator=noise, device=values.device)
    level = _tensor(rng.uniform(0, 1, (count, 1, 1, 1)) * config.noise, images)
    return (values + drawn * level + 0.5).clamp(0, 255).floor()


def _source_positions(first: Tensor, xy_t: Tensor) -> Tensor:
    """(N, h, w, 2): position in the source that lands on each pixel of the view."""
    count, height, width = first.shape
    field = xy_t.permute(0, 3, 1, 2)
    start = torch.stack([first % width, first.div(width, rounding_mode="floor")], dim=3).float()
    target = _grid(height, width, xy_t.device)
    at = first.clamp(min=0).reshape(count, -1, 1, 1).expand(-1, -1, 2, 2)
    inverse = _inverse_slope(xy_t).flatten(1, 2).gather(1, at).reshape(count, height, width, 2, 2)
    position = start
    for _ in range(STEPS):
        missed = (target - looked_up(field, position).permute(0, 2, 3, 1)).nan_to_num()
        position = position + (inverse @ missed[..., None])[..., 0]
        position = torch.minimum(torch.maximum(position, start - 2), start + 2)
    away = (looked_up(field, position).permute(0, 2, 3, 1) - target).norm(dim=3, keepdim=True)
    result = torch.where(away < EXACT_PX, position, start)  # a NaN is not over an edge either
    return torch.where((first >= 0)[..., None], result, torch.nan)


def _inverse_slope(xy_t: Tensor) -> Tensor:
    """(N, h, w, 2, 2): inverse Jacobian of the forward map, the identity where it has none."""
    down, right = torch.gradient(xy_t, dim=(1, 2))
    a, b, c, d = right[..., 0], down[..., 0], right[..., 1], down[..., 1]
    determinant = a * d - b * c
    good = determinant.isfinite() & (determinant.abs() > FLAT)
    inverse = torch.stack([d, -b, -c, a], dim=3) / torch.where(good, determinant, 1.0)[..., None]
    eye = torch.tensor([1.0, 0.0, 0.0, 1.0], device=xy_t.device)
    return torch.where(good[..., None], inverse, eye).unflatten(3, (2, 2))


def _round_trip_px(xy_t: Tensor, xy_s: Tensor) -> Tensor:
    """(N, h, w): how far each source pixel lies from where the view's nearest pixel came from."""
    count, height, width = xy_t.shape[:3]
    whole = xy_t.nan_to_num(nan=-9.0).round().clamp(-9, 1 << 20).long()
    x, y = whole[..., 0], whole[..., 1]
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    row = torch.where(inside, y * width + x, 0).reshape(count, -1, 1).expand(-1, -1, 2)
    back = xy_s.flatten(1, 2).gather(1, row).reshape(xy_s.shape)
    away = (back - _grid(height, width, xy_t.device)).norm(dim=3)
    return torch.where(inside & away.isfinite(), away, torch.inf)


def _as_pairs(pixels: Tensor, view: Synthesised, valid: Sequence[ArrayBool]) -> list[NovelViewPair]:
    """For the losses, which find on the processor which patches belong together."""
    images = pixels.permute(0, 2, 3, 1).to(torch.uint8).cpu().numpy()
    xy_t, xy_s, visible = (part.cpu().numpy() for part in view[1:])
    count = len(valid)
    return [
        NovelViewPair(
            images[i], NovelView(images[count + i], xy_t[i], xy_s[i], visible[i]), valid[i]
        )
        for i in range(count)
    ]


def _grid(height: int, width: int, device: torch.device) -> Tensor:
    """(h, w, 2): x and y of each pixel."""
    v, u = torch.meshgrid(
        torch.arange(height, device=device, dtype=torch.float32),
        torch.arange(width, device=device, dtype=torch.float32),
        indexing="ij",
    )
    return torch.stack([u, v], dim=2)


def _tensor(values: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).to(like.device)
