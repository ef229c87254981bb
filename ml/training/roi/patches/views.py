"""Two views of one piece of tissue: near each other, turned, scaled and restained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from ml.networks.patch_cnn import standardised
from ml.roi.stain import optical_density
from ml.training.roi.patches.blocks import BLOCK_PX, CELLS, Block
from ml.types import ArrayF32, ImageU8


@dataclass(frozen=True, slots=True)
class ViewConfig:
    """Strength of the augmentation."""

    crop_px: int = 64  # side of a view
    mpp: tuple[float, float] = (1.2, 3.2)  # microns per pixel of an example, drawn log-uniformly
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


def draw_pair(
    block: Block, rng: np.random.Generator, config: ViewConfig
) -> tuple[ImageU8, ImageU8]:
    """Two (crop, crop, 3) uint8 views near one place of a block."""
    side = block.mips[0].shape[0]
    # A view may cover two thirds of the block: larger ones would be mostly its mirrored rim.
    largest = 0.67 * side * block.mpp / config.crop_px
    mpp = min(float(np.exp(rng.uniform(*np.log(config.mpp)))), largest)
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


def restained(
    views: Sequence[ImageU8],
    colours: Sequence[ArrayF32],
    others: ArrayF32,
    rng: np.random.Generator,
    config: ViewConfig,
) -> Tensor:
    """(B, 3, crop, crop) float32: standardised densities, as another laboratory would have them.

    Args:
        views: B of (crop, crop, 3) uint8.
        colours: for each view the (3, 3) root of its patient's second moment.
        others: (P, 3, 3) those of all patients, to exchange with.
    Source: recolouring by second moments is the linear case of optimal transport between stains;
        training against it follows SRA (Voigt et al.) and HED jitter (Tellez et al. 2019).
    """
    count, side = len(views), config.crop_px
    mixing = np.stack([_mixing(c, others, rng, config) for c in colours]).astype(np.float32)
    od = torch.from_numpy(optical_density(np.stack(views)).reshape(count, -1, 3))
    od = (od @ torch.from_numpy(mixing)).clamp(0.0, 3.0)
    gamma = np.exp(rng.normal(0, config.gamma, (count, 1, 3))).astype(np.float32)
    od = od.pow(torch.from_numpy(gamma))
    grey = torch.from_numpy(rng.random(count) < config.grey)
    share = torch.from_numpy(rng.dirichlet((1, 1, 1), count).astype(np.float32))[:, None]
    od[grey] = (od * share).sum(dim=2, keepdim=True)[grey].expand(-1, -1, 3)
    x = standardised(od.transpose(1, 2).reshape(count, 3, side, side))
    deviation = rng.uniform(0, config.noise, (count, 1, 1, 1)).astype(np.float32)
    noise = rng.standard_normal(x.shape, dtype=np.float32) * deviation
    return (x + torch.from_numpy(noise)).clamp(-6, 6)


def _mixing(
    colour: ArrayF32, others: ArrayF32, rng: np.random.Generator, config: ViewConfig
) -> np.ndarray:
    matrix = np.eye(3)
    if rng.random() < config.swap:
        other = others[rng.integers(len(others))]
        matrix = np.linalg.solve(colour.astype(np.float64), other.astype(np.float64))
    jitter = np.diag(np.exp(rng.normal(0, config.gain, 3))) + rng.normal(0, config.mix, (3, 3))
    return np.asarray(matrix @ jitter)
