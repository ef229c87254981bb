"""The views of ``views`` made on the device of the network, a whole batch in one call.

All blocks lie in the memory of the device; what is drawn (places, turns, stains) is a few numbers a
view. The views follow the same distribution as those of ``views``, not the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.networks.device import Compute
from ml.networks.patch_cnn import standardised
from ml.roi.stain import optical_density
from ml.training.common.device.jpeg import compressed
from ml.training.roi.patches.blocks import BLOCK_PX, CELLS, Blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.types import ArrayF64, ArrayI64

_BLUR_PX = 4  # radius of the blur's kernel: three deviations of the widest


@dataclass(frozen=True, slots=True)
class Windows:
    """Where N views lie.

    Attributes:
        block: (N,) int64 number of the block. level: (N,) int64 its mip level.
        matrix: (N, 2, 3) float64, from pixels of the view to pixels of that level.
    """

    block: ArrayI64
    level: ArrayI64
    matrix: ArrayF64


class DeviceTissueViews:
    """Draws the batch of a step, as ``TissueViews`` does, on the device of ``compute``."""

    def __init__(self, config: PatchTrainConfig, blocks: Blocks, compute: Compute) -> None:
        self.config, self.device, self.batch = config, compute.device, config.batch
        sizes = np.array([len(own) for own in blocks.of_patient])
        self.share = sizes**config.patient_power / (sizes**config.patient_power).sum()
        self.first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.sizes = sizes
        every = [block for own in blocks.of_patient for block in own]
        self.mpp = np.array([block.mpp for block in every])
        self.cells = [block.cells for block in every]
        self.shape = np.array([[mip.shape[:2] for mip in block.mips] for block in every], np.int64)
        counts = self.shape.prod(axis=2).ravel()
        self.offset = (np.cumsum(counts) - counts).reshape(self.shape.shape[:2])
        pixels = np.concatenate([mip.reshape(-1, 3) for block in every for mip in block.mips])
        self.pixels = compute.sent(pixels)
        self.colour = blocks.colour
        levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
        self.density = compute.sent(optical_density(levels)[:, 0].copy())

    def __call__(self, step: int) -> Tensor:
        """(2 * batch, 3, crop, crop): row i and row batch + i are of one example."""
        rng = np.random.default_rng((self.config.seed, step))
        noise = torch.Generator(self.device).manual_seed(self.config.seed * 1_000_003 + step)
        patients = rng.choice(len(self.share), self.batch, p=self.share)
        views = self.sampled(self.windows(patients, rng))
        views = self._degraded(views, rng)
        return self._restained(views, np.tile(patients, 2), rng, noise)

    def windows(self, patients: ArrayI64, rng: np.random.Generator) -> Windows:
        """Two windows near one place of a block for each of B patients; (2 * B,), in two halves."""
        view, count = self.config.view, len(patients)
        block = self.first[patients] + (rng.random(count) * self.sizes[patients]).astype(np.int64)
        side = self.shape[block, 0, 0]
        largest = 0.67 * side * self.mpp[block] / view.crop_px  # as in ``views.draw_pair``
        finest, coarsest = np.log(view.mpp)
        mpp = np.minimum(np.exp(rng.uniform(finest, coarsest, count)), largest)
        cells = [self.cells[b] for b in block]
        place = [own[int(u * len(own))] for own, u in zip(cells, rng.random(count), strict=True)]
        centre = (np.stack(place) + rng.random((count, 2))) * side[:, None] / CELLS
        both = np.tile(block, 2)
        zoom = np.tile(mpp / self.mpp[block], 2) * np.exp(
            rng.uniform(-view.zoom, view.zoom, 2 * count)
        )
        levels = self.shape.shape[1] - 1
        level = np.clip(np.floor(np.log2(np.maximum(zoom, 1.0))), 0, levels).astype(np.int64)
        reach = (view.shift * view.crop_px * zoom / 2)[:, None]
        centre = np.tile(centre, (2, 1)) + rng.uniform(-1, 1, (2 * count, 2)) * reach
        half = np.minimum(view.crop_px * zoom / 2, BLOCK_PX / 2)
        width = self.shape[both, 0, 1]
        low, high = np.minimum(half, width / 2), np.maximum(width - half, width / 2)
        centre = np.clip(centre, low[:, None], high[:, None]) / (2.0**level)[:, None]
        return Windows(both, level, _matrices(centre, zoom / 2.0**level, view.crop_px, rng))

    def sampled(self, windows: Windows) -> Tensor:
        """(N, 3, crop, crop) float32 in 0 to 255: bilinear, mirrored beyond the rim of a block."""
        side = self.config.view.crop_px
        matrix = self._tensor(windows.matrix)
        step = torch.arange(side, device=self.device, dtype=torch.float32)
        v, u = torch.meshgrid(step, step, indexing="ij")
        x = matrix[:, 0, 0, None, None] * u + matrix[:, 0, 1, None, None] * v
        x = x + matrix[:, 0, 2, None, None]
        y = matrix[:, 1, 0, None, None] * u + matrix[:, 1, 1, None, None] * v
        y = y + matrix[:, 1, 2, None, None]
        shape = self.shape[windows.block, windows.level]
        height, width = self._column(shape[:, 0]), self._column(shape[:, 1])
        offset = self._column(self.offset[windows.block, windows.level])
        left, top = x.floor(), y.floor()
        total = torch.zeros(*x.shape, 3, device=self.device)
        for right in (0, 1):
            for below in (0, 1):
                column = _mirrored(left.long() + right, width)
                row = _mirrored(top.long() + below, height)
                share = (1 - (x - left - right).abs()) * (1 - (y - top - below).abs())
                found = self.pixels[offset + row * width + column]
                total += share[..., None] * found.float()
        return total.permute(0, 3, 1, 2).contiguous()

    def _degraded(self, views: Tensor, rng: np.random.Generator) -> Tensor:
        """Blurred and compressed again, as many as the configuration says."""
        view, count = self.config.view, len(views)
        blurred = np.flatnonzero(rng.random(count) < view.blur)
        sigma = self._tensor(rng.uniform(0.4, 1.3, len(blurred)))
        jpeg = np.flatnonzero(rng.random(count) < view.jpeg)
        quality = self._tensor(rng.integers(30, 90, len(jpeg)))
        rows = torch.from_numpy(blurred).to(self.device)
        views[rows] = _blurred(views[rows], sigma)
        rows = torch.from_numpy(jpeg).to(self.device)
        views[rows] = compressed(views[rows], quality)
        return views.round().clamp(0, 255)

    def _restained(
        self, views: Tensor, patients: ArrayI64, rng: np.random.Generator, noise: torch.Generator
    ) -> Tensor:
        """Standardised densities, as ``views.restained`` makes them."""
        view, count = self.config.view, len(views)
        mixing = self._tensor(self._mixing(patients, rng))
        od = self.density[views.long()].flatten(2).transpose(1, 2)
        od = (od @ mixing).clamp(0.0, 3.0)
        od = od.pow(self._tensor(np.exp(rng.normal(0, view.gamma, (count, 1, 3)))))
        grey = self._tensor(rng.random(count) < view.grey)[:, None, None] > 0
        share = self._tensor(rng.dirichlet((1, 1, 1), count))[:, None]
        od = torch.where(grey, (od * share).sum(dim=2, keepdim=True), od)
        x = standardised(od.transpose(1, 2).reshape(views.shape))
        deviation = self._tensor(rng.uniform(0, view.noise, (count, 1, 1, 1)))
        drawn = torch.randn(x.shape, generator=noise, device=self.device)
        x = (x + drawn * deviation).clamp(-6, 6)
        return x.contiguous(memory_format=torch.channels_last)

    def _mixing(self, patients: ArrayI64, rng: np.random.Generator) -> ArrayF64:
        """(N, 3, 3) what densities are multiplied by: another patient's stain, then jitter."""
        view, count = self.config.view, len(patients)
        own = self.colour[patients].astype(np.float64)
        other = self.colour[rng.integers(len(self.colour), size=count)].astype(np.float64)
        swapped = (rng.random(count) < view.swap)[:, None, None]
        matrix = np.where(swapped, np.linalg.solve(own, other), np.eye(3))
        gain = np.exp(rng.normal(0, view.gain, (count, 3)))
        jitter = np.eye(3) * gain[:, None] + rng.normal(0, view.mix, (count, 3, 3))
        return np.asarray(matrix @ jitter)

    def _column(self, values: ArrayI64) -> Tensor:
        """(N, 1, 1) whole numbers beside (N, h, w) views."""
        return torch.from_numpy(values).to(self.device)[:, None, None]

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.float32)).to(self.device)


def _matrices(
    centre: ArrayF64, scale: ArrayF64, crop_px: int, rng: np.random.Generator
) -> ArrayF64:
    """(N, 2, 3): a turn, perhaps mirrored, whose middle lies at the centre."""
    count = len(centre)
    angle, mirror = rng.uniform(0, 2 * np.pi, count), rng.choice((-1.0, 1.0), count)
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    turn = np.stack([np.stack([c * mirror, -s], axis=1), np.stack([s * mirror, c], axis=1)], axis=1)
    middle = np.full(2, (crop_px - 1) / 2)
    return np.concatenate([turn, (centre - turn @ middle)[:, :, None]], axis=2)


def _mirrored(index: Tensor, size: Tensor) -> Tensor:
    """Indices reflected into 0 to size - 1, the pixel at the rim counted twice."""
    folded = index.remainder(2 * size)
    return torch.minimum(folded, 2 * size - 1 - folded)


def _blurred(views: Tensor, sigma: Tensor) -> Tensor:
    """(N, 3, h, w), each by its own Gaussian."""
    if not len(views):
        return views
    at = torch.arange(-_BLUR_PX, _BLUR_PX + 1, device=views.device, dtype=torch.float32)
    kernel = torch.exp(-0.5 * (at / sigma[:, None]) ** 2)
    kernel = (kernel / kernel.sum(dim=1, keepdim=True)).repeat_interleave(3, dim=0)
    flat = views.flatten(0, 1)[None]
    across, down = (_BLUR_PX, _BLUR_PX, 0, 0), (0, 0, _BLUR_PX, _BLUR_PX)
    for shape, pad in (((1, -1), across), ((-1, 1), down)):
        weight = kernel.reshape(len(kernel), 1, *shape)
        flat = functional.conv2d(functional.pad(flat, pad, "reflect"), weight, groups=len(kernel))
    return flat[0].reshape(views.shape)
