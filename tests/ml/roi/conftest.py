"""Synthetic tissue: pink stroma with dark nuclei of known number and size."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from ml.types import ImageU8


def draw_tissue(
    height: int, width: int, *, seed: int = 0, nuclei_per_mpx: int = 1500, radius_px: int = 5
) -> ImageU8:
    rng = np.random.default_rng(seed)
    image = np.full((height, width, 3), (225, 170, 200), np.float32)
    image += rng.normal(0, 6, image.shape)
    for _ in range(int(nuclei_per_mpx * height * width / 1e6)):
        centre = (int(rng.integers(width)), int(rng.integers(height)))
        axes = (radius_px, max(2, int(radius_px * 0.7)))
        cv2.ellipse(image, centre, axes, rng.uniform(0, 180), 0, 360, (95, 60, 140), -1)
    return np.clip(cv2.GaussianBlur(image, (0, 0), 0.8), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def tissue() -> Callable[..., ImageU8]:
    """``tissue(height, width, seed=, nuclei_per_mpx=, radius_px=)`` -> (H, W, 3) uint8."""
    return draw_tissue


def draw_mucosa(height: int, width: int, *, seed: int = 0) -> ImageU8:
    """Vessels and shading on pink, deterministic for a seed."""
    rng = np.random.default_rng(seed)
    image = np.full((height, width, 3), (190, 110, 100), np.float32)
    for cell, strength in ((64, 26), (20, 16), (7, 12)):
        size = (width // cell + 3, height // cell + 3)
        coarse = rng.normal(0, strength, (size[1], size[0])).astype(np.float32)
        image += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)[..., None]
    for _ in range(height * width // 2500):
        start = rng.uniform(0, (width, height))
        steps = np.cumsum(rng.normal(0, 9, (12, 2)), axis=0)
        line = np.round(start + steps).astype(np.int32)
        cv2.polylines(image, [line], False, (130, 40, 45), int(rng.integers(1, 4)), cv2.LINE_AA)
    return np.clip(cv2.GaussianBlur(image, (0, 0), 0.8), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def mucosa() -> Callable[..., ImageU8]:
    """``mucosa(height, width, seed=)`` -> (H, W, 3) uint8, as in endoscopy."""
    return draw_mucosa
