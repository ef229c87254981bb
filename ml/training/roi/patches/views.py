"""Two views of one piece of tissue: near each other, turned, scaled and restained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.imaging.tissue.optical_density import optical_density
from ml.networks.patch_cnn import standardise
from ml.training.roi.patches.blocks import BLOCK_PX, CELLS, Block
from ml.types import ArrayF32, ImageU8


@dataclass(frozen=True, slots=True)
class ViewConfig:
    """Strength of the augmentation."""

    crop_px: int = 64  # side of a view
    mpp: tuple[float, float] = (1.2, 3.2)  # microns per pixel of an example, drawn log-uniformly
    min_step: float = 0.0  # pixels of its block from one pixel of an example to the next, at least
    zoom: float = 0.3  # largest log scale of a view around its example's
    shift: float = 0.7  # largest offset of a view along each axis, in half crops
    swap: float = 0.6  # share of views that take another patient's colours
    mix: float = 0.18  # deviation of the entries of the matrix that mixes the densities
    gain: float = 0.35  # deviation of the log of each density's strength
    gamma: float = 0.2  # deviation of the log of the exponent of the densities
    grey: float = 0.15  # share of views with one mixture in place of all three densities
    blur: float = 0.3  # share of views blurred
    jpeg: float = 0.2  # share of views compressed again
    noise: float = 0.06  # largest deviation of the noise, in deviations of the patch

    @property
    def max_block_mpp(self) -> float:
        """Microns per pixel of the coarsest block that examples can be drawn from."""
        return self.mpp[1] / self.min_step if self.min_step else math.inf


class StainChange(NamedTuple):
    """Changes of the stains and noise of N views.

    Attributes:
        mixing: (N, 3, 3) float32, to multiply densities by from the right.
        gamma: (N, 1, 3) float32, exponents of the densities.
        is_grey: (N,) bool, whether one mixture takes the place of all three densities.
        share: (N, 3, 1) float32, that mixture.
        noise: (N, 1, 1, 1) float32, deviation of the noise.
        seed: of the noise.
    """

    mixing: Tensor
    gamma: Tensor
    is_grey: Tensor
    share: Tensor
    noise: Tensor
    seed: int

    def to(self, device: torch.device) -> StainChange:
        """Copy to another device."""
        mixing, gamma, is_grey, share, noise = (tensor.to(device) for tensor in self[:-1])
        return StainChange(mixing, gamma, is_grey, share, noise, self.seed)


def draw_pair(
    block: Block, rng: np.random.Generator, config: ViewConfig
) -> tuple[ImageU8, ImageU8]:
    """Cut two (crop, crop, 3) uint8 views near one place of a block."""
    side = block.mips[0].shape[0]
    # A view covers at most two thirds of the block, as its border is mirrored.
    largest = 0.67 * side * block.mpp / config.crop_px
    finest, coarsest = config.mpp
    finest = min(max(finest, config.min_step * block.mpp), coarsest)
    mpp = min(float(np.exp(rng.uniform(*np.log((finest, coarsest))))), largest)
    cell = block.cells[rng.integers(len(block.cells))]
    centre = (cell + rng.random(2)) * side / CELLS
    first, second = (_draw_view(block, centre, mpp, rng, config) for _ in range(2))
    return first, second


def _draw_view(
    block: Block, near: np.ndarray, mpp: float, rng: np.random.Generator, config: ViewConfig
) -> ImageU8:
    zoom = mpp / block.mpp * float(np.exp(rng.uniform(-config.zoom, config.zoom)))
    level = min(max(int(np.floor(np.log2(max(zoom, 1.0)))), 0), len(block.mips) - 1)
    pixels = block.mips[level]
    reach = config.shift * config.crop_px * zoom / 2
    half_l0 = min(config.crop_px * zoom / 2, BLOCK_PX / 2)
    side = block.mips[0].shape[1]
    centre = near + rng.uniform(-reach, reach, 2)
    centre = np.clip(centre, min(half_l0, side / 2), max(side - half_l0, side / 2))
    angle, mirror = rng.uniform(0, 2 * np.pi), rng.choice((-1.0, 1.0))
    scale = zoom / 2**level
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[:, 0] *= mirror
    half = (config.crop_px - 1) / 2
    matrix = np.column_stack([turn, centre / 2**level - turn @ np.array([half, half])])
    view = cv2.warpAffine(
        pixels,
        matrix,
        (config.crop_px, config.crop_px),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REFLECT,
    )
    if rng.random() < config.blur:
        view = cv2.GaussianBlur(view, (0, 0), rng.uniform(0.4, 1.3))
    if rng.random() < config.jpeg:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(30, 90))]
        coded = cv2.imencode(".jpg", view, quality)[1]
        view = np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)
    return np.asarray(view, np.uint8)


def draw_stains(
    colours: Sequence[ArrayF32],
    patient_roots: ArrayF32,
    rng: np.random.Generator,
    config: ViewConfig,
) -> StainChange:
    """Draw stain changes of N views.

    Args:
        colours: (3, 3) root of the second moment of each view's patient.
        patient_roots: (P, 3, 3) roots of all patients, to exchange with.
    Source: recolouring by second moments is the linear case of optimal transport between stains;
        training against it follows SRA (Voigt et al.) and HED jitter (Tellez et al. 2019).
    """
    count = len(colours)
    mixing = np.stack([_mixing(c, patient_roots, rng, config) for c in colours])
    drawn = (
        mixing,
        np.exp(rng.normal(0, config.gamma, (count, 1, 3))),
        rng.random(count) < config.grey,
        rng.dirichlet((1, 1, 1), count)[..., None],
        rng.uniform(0, config.noise, (count, 1, 1, 1)),
    )
    mix, gamma, is_grey, share, noise = (
        torch.from_numpy(x if x.dtype == bool else x.astype(np.float32)) for x in drawn
    )
    return StainChange(mix, gamma, is_grey, share, noise, int(rng.integers(1 << 62)))


def restained(views: Tensor, change: StainChange) -> Tensor:
    """Recolour views, and standardise their densities, (N, 3, h, w) float32.

    The noise depends on the device.

    Args:
        views: (N, h, w, 3) uint8, on the device of ``change``.
    """
    count, height, width, _ = views.shape
    od = _densities(views.device)[views.int()].reshape(count, -1, 3)
    od = (od @ change.mixing).clamp(0.0, 3.0).pow(change.gamma)
    od = torch.where(change.is_grey[:, None, None], od @ change.share, od)
    x = standardise(od.transpose(1, 2).reshape(count, 3, height, width))
    generator = torch.Generator(views.device).manual_seed(change.seed)
    noise = torch.randn(x.shape, generator=generator, device=x.device)
    return (x + noise * change.noise).clamp(-6, 6)


@lru_cache(maxsize=2)
def _densities(device: torch.device) -> Tensor:
    """(256,) optical density of each pixel value."""
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    return torch.from_numpy(optical_density(levels)[:, 0].copy()).to(device)


def _mixing(
    colour: ArrayF32, patient_roots: ArrayF32, rng: np.random.Generator, config: ViewConfig
) -> np.ndarray:
    matrix = np.eye(3)
    if rng.random() < config.swap:
        other = patient_roots[rng.integers(len(patient_roots))]
        matrix = np.linalg.solve(colour.astype(np.float64), other.astype(np.float64))
    jitter = np.diag(np.exp(rng.normal(0, config.gain, 3))) + rng.normal(0, config.mix, (3, 3))
    return np.asarray(matrix @ jitter)
