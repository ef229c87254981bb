"""The two-band blend on a device: frames are warped, split and added up there."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ml.geometry import translation
from ml.keypoints.device.planes import blurred, eroded, grown, shrunk, warped
from ml.mosaic.deghost import COARSER, DARK, LEAST_SHARE, SAME_HUE, CommonHue
from ml.networks.device import Compute
from ml.types import ArrayF32, ArrayF64, ImageU8

TILES_ON_DEVICE = 128
"""128 accumulator tiles of 512 px are 1 GiB; the rest waits on disk."""


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
        box: tuple[int, int, int, int],
        gain: ArrayF32,
        sharp: float,
    ) -> None:
        """Add a frame.

        Args:
            rgb: (H, W, 3). trusted: (H, W), how far each pixel is.
            matrix: (3, 3), pixels of the frame to those of the mosaic.
            box: left, top, right, bottom of it there.
            gain: (3,) by which it is brightened. sharp: weight of its fine detail.
        """
        left, top, right, bottom = box
        size = (right - left, bottom - top)
        with torch.inference_mode():
            colour = self._compute.sent(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None].float()
            colour = colour * self._compute.sent(gain)[None, :, None, None]
            own = self._compute.sent(np.ascontiguousarray(trusted))[None, None]
            planes = torch.cat([colour, self._feather, own], dim=1)
            to_frame: ArrayF64 = np.linalg.inv(translation(-left, -top) @ matrix).astype(np.float64)
            planes = warped(planes, to_frame, size, border="zeros")
            pixels, weight, trust = planes[:, :3], planes[:, 3:4], planes[:, 4:5]
            agreed = self._share(pixels, left, top)
            bands = self._bands(pixels, weight, trust * sharp**2 * agreed, agreed)
            self._tiles.add(bands[0], left, top)

    def write(self, out: np.ndarray) -> None:
        """Normalise every tile into ``out``, (H, W, 3) uint8."""
        self._tiles.write(out)

    def _bands(self, pixels: Tensor, weight: Tensor, trust: Tensor, agreed: Tensor) -> Tensor:
        """(1, 8, h, w): coarse RGB times its weight, that weight; fine RGB likewise."""
        rule = self._rule
        seen = (weight > 0).float()
        coarse = _normalised_blur(pixels, seen * agreed, rule.coarse_share)
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


def _normalised_blur(pixels: Tensor, seen: Tensor, share: float) -> Tensor:
    height, width = seen.shape[2:]
    small = (max(1, width // 4), max(1, height // 4))
    sigma = max(1.0, share * min(height, width) / 4)
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

    def _get(self, key: tuple[int, int]) -> Tensor:
        tile = self._tiles.pop(key, None)
        if tile is None and key in self._stored:
            tile = torch.from_numpy(np.load(self._path(key))).to(self._device)
        while tile is None:
            try:
                tile = torch.zeros(8, self._px, self._px, device=self._device)
            except torch.OutOfMemoryError:
                if not self._tiles:
                    raise
                self._capacity = max(1, len(self._tiles) // 2)
                self._spill(self._capacity)
        self._tiles[key] = tile
        self._spill(self._capacity)
        return tile

    def _spill(self, kept: int) -> None:
        while len(self._tiles) > kept:
            old, oldest = self._tiles.popitem(last=False)
            np.save(self._path(old), oldest.cpu().numpy())
            self._stored.add(old)

    def _path(self, key: tuple[int, int]) -> Path:
        return self._folder / f"{key[0]}-{key[1]}.npy"
