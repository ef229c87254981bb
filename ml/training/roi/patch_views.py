"""Views of patches for the patch encoder: moved, scaled, turned, stained and seen otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.roi.stain import RUIFROK_HE, optical_density
from ml.training.roi.augment import random_look
from ml.types import ArrayF32, ArrayF64, ImageU8

_STAIN_PIXELS = 1500


@dataclass(frozen=True, slots=True)
class PatchViewConfig:
    """Strength of the augmentation."""

    crop_px: int = 64  # side of a view
    zoom: float = 0.5  # largest log scale: 0.6 to 1.65 um/px around 10x
    shift_px: float = 48.0  # largest distance of a view's centre from the patch's, each axis
    stain: float = 0.25  # see augment.random_look
    strength: float = 0.15  # deviation of the log of each channel's strength and gamma
    grey: float = 0.15  # share of views whose stains are both replaced by the density
    blur: float = 0.3  # share of views blurred
    jpeg: float = 0.3  # share of views compressed again
    noise: float = 0.03  # largest deviation of the noise on concentrations


@dataclass(frozen=True, slots=True)
class PatchImage:
    """One image at 10x.

    Attributes:
        pixels: (H, W, 3) uint8.
        centre_px: (N, 2) float64, patches that hold tissue.
        sample_od: (1500, 3) float32, optical densities that show how strongly it is stained.
    """

    pixels: ImageU8
    centre_px: ArrayF64
    sample_od: ArrayF32


def stain_sample(patches: Sequence[ImageU8], rng: np.random.Generator) -> ArrayF32:
    """(1500, 3) optical densities drawn from patches."""
    pixels = np.concatenate([patch[::4, ::4].reshape(-1, 3) for patch in patches])
    return optical_density(pixels[rng.integers(len(pixels), size=_STAIN_PIXELS)])


def draw_view(
    source: PatchImage, patch: int, rng: np.random.Generator, config: PatchViewConfig
) -> ImageU8:
    """(crop, crop, 3) uint8: a turned, scaled, perhaps mirrored crop near a patch's centre."""
    half, zoom = (config.crop_px - 1) / 2, float(np.exp(rng.uniform(-config.zoom, config.zoom)))
    angle, mirror = rng.uniform(0, 2 * np.pi), rng.choice((-1.0, 1.0))
    turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[:, 0] *= mirror
    centre = source.centre_px[patch] + rng.uniform(-config.shift_px, config.shift_px, 2)
    matrix = np.column_stack([turn, centre - turn @ np.array([half, half])])
    view = cv2.warpAffine(
        source.pixels,
        matrix,
        (config.crop_px, config.crop_px),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REFLECT,
    )
    if rng.random() < config.blur:
        view = cv2.GaussianBlur(view, (0, 0), rng.uniform(0.4, 1.2))
    if rng.random() < config.jpeg:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(30, 90))]
        coded = cv2.imencode(".jpg", view, quality)[1]
        view = np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)
    return np.asarray(view, np.uint8)


def stained_views(
    views: Sequence[ImageU8],
    samples: Sequence[ArrayF32],
    rng: np.random.Generator,
    config: PatchViewConfig,
) -> Tensor:
    """(B, 3, crop, crop) float32: concentrations as the encoder sees them, in another stain.

    Args:
        views: B of (crop, crop, 3) uint8.
        samples: for each view its source's ``sample_od``: what sets the strength that counts as 1.
    """
    mixing = [random_look(rng, stain=config.stain, zoom=0.0).mixing for _ in views]
    mix = torch.from_numpy(np.stack(mixing)).float()
    unit = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
    to_stains = np.concatenate([np.linalg.pinv(unit), np.full((3, 1), 1 / 3)], axis=1)
    unmix = torch.from_numpy(to_stains).float()
    count = len(views)
    sample = (torch.from_numpy(np.stack(samples)) @ mix.transpose(1, 2)).clamp(0, 3) @ unmix
    rank = round(0.99 * sample.shape[1])
    scale = sample.kthvalue(rank, dim=1).values.clamp(min=0.15)
    od = torch.from_numpy(optical_density(np.stack(views)).reshape(count, -1, 3))
    x = ((od @ mix.transpose(1, 2)).clamp(0, 3) @ unmix) / scale[:, None]
    gain = np.exp(rng.normal(0, config.strength, (2, count, 1, 3))).astype(np.float32)
    x = (x.clamp(0, 2) * torch.from_numpy(gain[0])).pow(torch.from_numpy(gain[1]))
    grey = torch.from_numpy(rng.random(count) < config.grey)
    x[grey] = x[grey][..., 2:]
    side = config.crop_px
    x = x.transpose(1, 2).reshape(count, 3, side, side)
    noise = rng.standard_normal(x.shape, dtype=np.float32)
    deviation = rng.uniform(0, config.noise, (count, 1, 1, 1)).astype(np.float32)
    return x + torch.from_numpy(noise * deviation)
