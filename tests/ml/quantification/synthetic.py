"""Sections that are drawn: nuclei with known places, radii and densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ml.quantification.config import Staining
from ml.quantification.stains import stain_matrix
from ml.types import ImageU8


@dataclass(frozen=True)
class Nucleus:
    x: float
    y: float
    radius_px: float = 8.0
    haematoxylin: float = 0.5
    second: float = 0.0


def section(
    nuclei: Sequence[Nucleus],
    size: tuple[int, int],
    *,
    background: float = 0.08,
    staining: Staining = Staining.DAB_NUCLEAR,
    noise: float = 0.0,
) -> ImageU8:
    """(H, W, 3): nuclei with a rim of one pixel on evenly stained tissue."""
    rows, columns = np.mgrid[: size[1], : size[0]] + 0.5
    stains = np.zeros((size[1], size[0], 3))
    stains[..., 0] = background
    for nucleus in nuclei:
        distance = np.hypot(columns - nucleus.x, rows - nucleus.y)
        share = np.clip(nucleus.radius_px - distance + 0.5, 0, 1)
        stains[..., 0] = np.maximum(stains[..., 0], share * nucleus.haematoxylin)
        stains[..., 1] = np.maximum(stains[..., 1], share * nucleus.second)
    white = 256 * 10 ** -(stains @ stain_matrix(staining)) - 1
    if noise:
        white += np.random.default_rng(7).normal(0, noise, white.shape)
    return np.clip(np.round(white), 0, 255).astype(np.uint8)


class Pixels:
    """An image in memory that is read as a slide is."""

    def __init__(self, image: ImageU8) -> None:
        self.image, self.largest = image, 0

    @property
    def size(self) -> tuple[int, int]:
        return self.image.shape[1], self.image.shape[0]

    def read_region(
        self, xy_l0: tuple[float, float], size_l0: tuple[float, float], out_px: tuple[int, int]
    ) -> ImageU8:
        assert size_l0 == out_px, "read at level 0 only"
        self.largest = max(self.largest, out_px[0] * out_px[1])
        x, y = round(xy_l0[0]), round(xy_l0[1])
        out = np.full((out_px[1], out_px[0], 3), 255, np.uint8)
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + out_px[0], self.size[0]), min(y + out_px[1], self.size[1])
        if left < right and top < bottom:
            out[top - y : bottom - y, left - x : right - x] = self.image[top:bottom, left:right]
        return out
