"""The views of ``views`` made on the device of the network.

Where a view lies and how its light differs is a few numbers, drawn as there; pixels are made on the
device. Without noise a view agrees with OpenCV's to a grey level or two; noise is drawn on the
device, so that it has the same distribution but other values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.keypoints.descriptors.learned import PAD_PX
from ml.keypoints.device.planes import equalised, filtered, warped
from ml.networks.device import Compute
from ml.training.common.device.stills import KeptPlanes
from ml.training.descriptors.views import (
    KeypointStill,
    StillViewConfig,
    random_motion_kernel,
    random_transform,
)
from ml.types import ArrayF64, ImageU8


@dataclass(frozen=True, slots=True)
class Lights:
    """How the light of N images differs: (N,) each, and (N, k, k) kernels of motion blur.

    ``is_other`` says which of them differ at all.
    """

    is_other: np.ndarray
    gamma: np.ndarray
    gain: np.ndarray
    noise_sd: np.ndarray
    kernels: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, count: int, config: StillViewConfig) -> Lights:
        """As ``other_light`` draws them for a share ``config.photometric`` of the images."""
        is_other = rng.random(count) < config.photometric
        gamma, gain = rng.uniform(*config.gamma, count), rng.uniform(*config.gain, count)
        side = 2 * (max(config.blur_px, 1) // 2) + 1
        kernels = np.zeros((count, side, side), np.float32)
        kernels[:, side // 2, side // 2] = 1
        is_moved = is_other & (rng.random(count) < 0.5) & (config.blur_px >= 2)
        for i in np.flatnonzero(is_moved):
            kernel = random_motion_kernel(rng, config.blur_px)
            edge = (side - len(kernel)) // 2
            kernels[i] = 0
            kernels[i, edge : side - edge, edge : side - edge] = kernel
        return cls(is_other, gamma, gain, rng.uniform(0, config.noise_sd, count), kernels)


def relit(images: Tensor, lights: Lights, noise: torch.Generator) -> Tensor:
    """(N, 1, h, w) grey in whole numbers of 0 to 255, in other light where ``is_other``."""

    def column(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values.astype(np.float32)).to(images.device)[:, None, None, None]

    light = 255 * (images / 255) ** column(lights.gamma) * column(lights.gain)
    light = filtered(light, torch.from_numpy(lights.kernels).to(images.device))
    drawn = torch.randn(images.shape, generator=noise, device=images.device)
    light = (light + drawn * column(lights.noise_sd) + 0.5).clamp(0, 255).floor()
    return torch.where(column(lights.is_other) > 0, light, images)


def relit_patches(rng: np.random.Generator, patches: Tensor, config: StillViewConfig) -> Tensor:
    """(N, 1, S, S) uint8 patches, a share of them in other light."""
    lights = Lights.drawn(rng, len(patches), config)
    return relit(patches.float(), lights, _generator(rng, patches.device)).to(torch.uint8)


class DeviceStills:
    """Stills on the device, uploaded once, and views of them."""

    def __init__(self, compute: Compute) -> None:
        self._kept = KeptPlanes(compute)

    def plane(self, image: ImageU8) -> Tensor:
        """(1, 1, H, W) float32 in 0 to 255."""
        return self._kept(image)[None, None].float()

    def view(
        self, rng: np.random.Generator, still: KeypointStill, config: StillViewConfig
    ) -> tuple[Tensor, ArrayF64]:
        """A view as ``make_view`` makes it, (1, 1, H, W) equalised, and its H_view_from_still."""
        height, width = still.grey.shape
        matrix = random_transform(rng, (height, width), config)
        back = np.asarray(np.linalg.inv(matrix), np.float64)
        grey = warped(self.plane(still.grey), back, (width, height), border="zeros").round()
        lights = Lights.drawn(rng, 1, config)
        return equalised(relit(grey, lights, _generator(rng, grey.device))), matrix


def padded_plane(grey: Tensor, *, step: int) -> Tensor:
    """``padded`` and ``as_plane`` for a (1, 1, H, W) image in 0 to 255."""
    below, right = (-(side + 2 * PAD_PX) % step for side in grey.shape[2:])
    pads = (PAD_PX, PAD_PX + right, PAD_PX, PAD_PX + below)
    plane = functional.pad(grey, pads, mode="reflect") / 255.0
    return plane.contiguous(memory_format=torch.channels_last)


def _generator(rng: np.random.Generator, device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(int(rng.integers(1 << 62)))
