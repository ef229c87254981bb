"""The two-band blend on a device: frames are warped, split and added up there."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ml.geometry import box_corners, transform_points, translation
from ml.keypoints.device.planes import blurred, eroded, grown, shrunk, warped
from ml.mosaic.canvas import tile_file
from ml.mosaic.deghost import COARSER, DARK, LEAST_SHARE, SAME_HUE, CommonHue
from ml.networks.device import Compute
from ml.types import ArrayF32, ArrayF64, ImageU8

TILES_ON_DEVICE = 128
"""128 accumulator tiles of 512 px are 1 GiB; the rest waits on disk."""

COARSER_BLUR = 4
"""The coarse band is blurred at a quarter of the size, as on the processor."""

REACH_SIGMAS = 3.0
"""What lies farther off changes a blurred px by less than a grey level."""

LEAST_PART_PX = 64
"""Parts of a frame are halved no further: with what the blur reaches they hardly get smaller."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, px of the mosaic."""


class BandRule(NamedTuple):
    """How the blend weighs: see the constants of ``ml.mosaic.blend``."""

    tile_px: int
    coarse_share: float
    coarse_power: float
    fine_power: float


class DevicePainter:
    """Adds frames to accumulator tiles on a device, as ``ml.mosaic.blend`` does on a processor.

    In float32 throughout, since both bands are sums of many frames. The picture agrees with the
    processor's to a grey level on average.
    """

    def __init__(
        self,
        compute: Compute,
        folder: Path,
        *,
        feather: ArrayF32,
        common: CommonHue,
        rule: BandRule,
        capacity: int = TILES_ON_DEVICE,
    ) -> None:
        self._compute, self._rule, self._common = compute, rule, common
        self._feather = compute.sent(feather)[None, None]
        self._hue = compute.sent(np.ascontiguousarray(common.hue)).permute(2, 0, 1)[None]
        self._tiles = DeviceTiles(folder, compute.device, rule.tile_px, capacity)

    def add(  # noqa: PLR0917
        self,
        rgb: ImageU8,
        trusted: ArrayF32,
        matrix: ArrayF64,
        box: Box,
        gain: ArrayF32,
        sharp: float,
    ) -> None:
        """Add a frame.

        Args:
            rgb: (H, W, 3). trusted: (H, W), how far each pixel may be trusted.
            matrix: (3, 3), pixels of the frame to those of the mosaic.
            box: left, top, right, bottom of the frame in the mosaic.
            gain: (3,) by which it is brightened. sharp: weight of its fine detail.
        Raises:
            torch.OutOfMemoryError: not even a small part of it fits, with all tiles in files.
        """
        frame = _Frame(rgb, trusted, matrix, gain, sharp, box)
        waiting = [box]
        with torch.inference_mode():
            while waiting:
                part = waiting.pop()
                try:
                    bands = self._warped_bands(frame, part)
                except torch.OutOfMemoryError:
                    waiting += [part] if self._tiles.to_files() else _halves(part)
                    continue
                self._tiles.add(bands, part[0], part[1])

    def write(self, out: np.ndarray) -> None:
        """Normalise every tile into ``out``, (H, W, 3) uint8."""
        self._tiles.write(out)

    def _warped_bands(self, frame: _Frame, part: Box) -> Tensor:
        """(8, h, w) of a part of the frame's box: coarse RGB times its weight, that weight; fine
        RGB likewise. Worked out with as much around the part as the blur of the whole reaches."""
        sigma = _sigma(self._rule, frame.box)
        left, top, right, bottom = wide = _wider(part, frame.box, sigma)
        size = (right - left, bottom - top)
        to_frame = np.linalg.inv(translation(-left, -top) @ frame.matrix).astype(np.float64)
        planes = self._planes(frame, to_frame, size)
        pixels, weight, trust = planes[:, :3], planes[:, 3:4], planes[:, 4:5]
        agreed = self._share(pixels, left, top)
        bands = self._bands(pixels, weight, trust * frame.sharp**2 * agreed, agreed, sigma)
        rows, columns = (slice(part[i] - wide[i], part[i + 2] - wide[i]) for i in (1, 0))
        return bands[0, :, rows, columns]

    def _planes(self, frame: _Frame, to_frame: ArrayF64, size: tuple[int, int]) -> Tensor:
        """(1, 5, h, w): the frame's RGB, rim weight and trust, of the px of the frame it needs."""
        sent = self._compute.sent
        x0, y0, x1, y1 = _taken(to_frame, size, (frame.rgb.shape[1], frame.rgb.shape[0]))
        rgb = sent(np.ascontiguousarray(frame.rgb[y0:y1, x0:x1])).permute(2, 0, 1)[None].float()
        rgb = rgb * sent(frame.gain)[None, :, None, None]
        own = sent(np.ascontiguousarray(frame.trusted[y0:y1, x0:x1]))[None, None]
        planes = torch.cat([rgb, self._feather[:, :, y0:y1, x0:x1], own], dim=1)
        return warped(planes, translation(-x0, -y0) @ to_frame, size, border="zeros")

    def _bands(
        self, pixels: Tensor, weight: Tensor, trust: Tensor, agreed: Tensor, sigma: float
    ) -> Tensor:
        rule = self._rule
        seen = (weight > 0).float()
        coarse = _normalised_blur(pixels, seen * agreed, sigma)
        coarse_weight = weight**rule.coarse_power * trust.clamp(max=1.0)
        fine_weight = (weight + 1e-3 * seen) ** rule.fine_power * trust
        fine = pixels - coarse
        parts = [coarse * coarse_weight, coarse_weight, fine * fine_weight, fine_weight]
        return torch.cat(parts, dim=1)

    def _share(self, pixels: Tensor, left: int, top: int) -> Tensor:
        """(1, 1, h, w): see ``CommonHue.share``."""
        height, width = pixels.shape[2:]
        size = (max(1, width // COARSER), max(1, height // COARSER))
        small = shrunk(pixels, size)
        hue = small[:, :2] / (small.sum(dim=1, keepdim=True) + DARK)
        to_box = np.diag([size[0] / width, size[1] / height, 1.0])
        to_box[:2, 2] = 0.5 * to_box.diagonal()[:2] - 0.5
        matrix = self._common.from_box(left, top) @ np.linalg.inv(to_box)
        common = warped(self._hue, matrix, size, border="border")
        apart = (hue - common).square().sum(dim=1, keepdim=True)
        agreed = (-apart / SAME_HUE**2).exp().clamp(min=LEAST_SHARE)
        return grown(eroded(agreed), (width, height))


class _Frame(NamedTuple):
    """What ``DevicePainter.add`` is given."""

    rgb: ImageU8
    trusted: ArrayF32
    matrix: ArrayF64
    gain: ArrayF32
    sharp: float
    box: Box


def _halves(part: Box) -> list[Box]:
    """A part cut across its longer side.

    Raises:
        torch.OutOfMemoryError: it is so small that halves would need as much.
    """
    left, top, right, bottom = part
    if max(right - left, bottom - top) < LEAST_PART_PX:
        raise torch.OutOfMemoryError(f"no memory for {right - left} x {bottom - top} px of a frame")
    x, y = (left + right) // 2, (top + bottom) // 2
    if right - left > bottom - top:
        return [(left, top, x, bottom), (x, top, right, bottom)]
    return [(left, top, right, y), (left, y, right, bottom)]


def _wider(part: Box, whole: Box, sigma: float) -> Box:
    """The part and what lies within the blur's reach, as far as the whole has it."""
    if part == whole:
        return whole
    # whole steps from the corner of the whole: nearly the same px are averaged as there
    reach = COARSER_BLUR * (1 + math.ceil(REACH_SIGMAS * sigma))
    low = [max(0, part[i] - whole[i] - reach) // COARSER_BLUR * COARSER_BLUR for i in (0, 1)]
    left, top = whole[0] + low[0], whole[1] + low[1]
    return left, top, min(whole[2], part[2] + reach), min(whole[3], part[3] + reach)


def _taken(to_frame: ArrayF64, size: tuple[int, int], frame: tuple[int, int]) -> Box:
    """The px of a frame of that size that a box of ``size`` takes from it.

    One at least, of the rim, where the box lies beside the frame: ``rim_weight`` is 0 there.
    """
    corners = box_corners(0, 0, *size)
    if (corners @ to_frame[2, :2] + to_frame[2, 2]).min() <= 0:  # beyond the frame's horizon
        return 0, 0, *frame
    spots = transform_points(to_frame, corners)
    low, high = np.floor(spots.min(axis=0)) - 1, np.ceil(spots.max(axis=0)) + 2
    x0, y0 = (int(np.clip(low[i], 0, frame[i] - 1)) for i in (0, 1))
    x1, y1 = (int(np.clip(high[i], at + 1, frame[i])) for i, at in ((0, x0), (1, y0)))
    return x0, y0, x1, y1


def _sigma(rule: BandRule, box: Box) -> float:
    """Of the blur of a frame in that box, px of a quarter of its size."""
    return max(1.0, rule.coarse_share * min(box[2] - box[0], box[3] - box[1]) / COARSER_BLUR)


def _normalised_blur(pixels: Tensor, seen: Tensor, sigma: float) -> Tensor:
    height, width = seen.shape[2:]
    small = (max(1, width // COARSER_BLUR), max(1, height // COARSER_BLUR))
    both = blurred(shrunk(torch.cat([pixels * seen, seen], dim=1), small), sigma)
    return grown(both[:, :3] / both[:, 3:].clamp(min=1e-4), (width, height))


class DeviceTiles:
    """Accumulator tiles on a device, those not used for long in files."""

    def __init__(self, folder: Path, device: torch.device, tile_px: int, capacity: int) -> None:
        self._folder, self._device, self._px = folder, device, tile_px
        self._capacity = capacity
        self._tiles: OrderedDict[tuple[int, int], Tensor] = OrderedDict()
        self._stored: set[tuple[int, int]] = set()

    def add(self, bands: Tensor, left: int, top: int) -> None:
        """Add (8, h, w) to every tile it touches."""
        px, (height, width) = self._px, bands.shape[1:]
        for row in range(top // px, (top + height - 1) // px + 1):
            for column in range(left // px, (left + width - 1) // px + 1):
                x, y = column * px, row * px
                x0, x1 = max(x, left), min(x + px, left + width)
                y0, y1 = max(y, top), min(y + px, top + height)
                part = bands[:, y0 - top : y1 - top, x0 - left : x1 - left]
                self._get((column, row))[:, y0 - y : y1 - y, x0 - x : x1 - x] += part

    def write(self, out: np.ndarray) -> None:
        """Normalise every tile into ``out``."""
        px = self._px
        for column, row in sorted(self._stored | set(self._tiles)):
            tile = self._get((column, row))
            pixels = tile[:3] / tile[3:4].clamp(min=1e-12) + tile[4:7] / tile[7:8].clamp(min=1e-30)
            pixels = torch.where(tile[3:4] > 0, pixels, 0.0).round().clamp(0, 255)
            target = out[row * px : (row + 1) * px, column * px : (column + 1) * px]
            whole = pixels.to(torch.uint8).permute(1, 2, 0).cpu().numpy()
            target[:] = whole[: target.shape[0], : target.shape[1]]

    def to_files(self) -> bool:
        """Move the tiles to files, to make room on the device; returns whether there were any."""
        held = len(self._tiles)
        self._spill(0)
        torch.cuda.empty_cache()
        return held > 0

    def _get(self, key: tuple[int, int]) -> Tensor:
        tile = self._tiles.pop(key, None)
        while tile is None:
            try:
                tile = self._made(key)
            except torch.OutOfMemoryError:
                if not self._tiles:
                    raise
                self._capacity = max(1, len(self._tiles) // 2)
                self._spill(self._capacity)
        self._tiles[key] = tile
        self._spill(self._capacity)
        return tile

    def _made(self, key: tuple[int, int]) -> Tensor:
        if key in self._stored:
            return torch.from_numpy(np.load(tile_file(self._folder, key))).to(self._device)
        return torch.zeros(8, self._px, self._px, device=self._device)

    def _spill(self, kept: int) -> None:
        while len(self._tiles) > kept:
            old, oldest = self._tiles.popitem(last=False)
            np.save(tile_file(self._folder, old), oldest.cpu().numpy())
            self._stored.add(old)
