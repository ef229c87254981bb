"""Synthetic views of endoscopic stills: transformed, blurred, badly lit, compressed."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.geometry import normalised, translation
from ml.types import ArrayF64, ImageU8


@dataclass(frozen=True, slots=True)
class TesseraViewConfig:
    """Differences between a view and its still. Chances are per view."""

    full_turn: float = 0.7  # chance of any rotation; otherwise at most ``small_turn_deg``
    small_turn_deg: float = 20.0
    zoom: float = 1.4  # largest factor of scale, either way
    stretch: float = 1.2  # largest factor between two directions
    perspective: float = 0.12  # largest shift of a corner, as a share of the side
    shift: float = 0.08  # largest translation, as a share of the side
    black_border: float = 0.6  # chance that the outside of the still is black, else mirrored
    rim: float = 0.35  # chance of a scope's round rim
    motion: float = 0.35  # chance of motion blur
    motion_px: int = 17  # longest motion blur
    defocus: float = 0.25  # chance of defocus
    defocus_px: float = 2.5  # largest deviation of it
    light: float = 0.5  # chance of a vignette or a gradient of light
    spots: float = 0.3  # chance of new highlights
    haze: float = 0.2  # chance of smoke
    noise: float = 0.6  # chance of sensor noise
    noise_level: float = 9.0  # its largest deviation in grey levels
    jpeg: float = 0.4  # chance of compression


def random_homography(
    rng: np.random.Generator, *, width: int, height: int, config: TesseraViewConfig
) -> ArrayF64:
    """Draw a (3, 3) homography from the still's pixels to the view's, about the centre."""
    full = rng.random() < config.full_turn
    turn = (
        rng.uniform(-np.pi, np.pi)
        if full
        else np.radians(config.small_turn_deg) * rng.uniform(-1, 1)
    )
    zoom = config.zoom ** rng.uniform(-1, 1)
    stretch = config.stretch ** rng.uniform(-0.5, 0.5)
    axis = rng.uniform(0, np.pi)
    along = _rotation(axis) @ np.diag([zoom * stretch, zoom / stretch]) @ _rotation(-axis)
    linear = np.eye(3)
    linear[:2, :2] = _rotation(turn) @ along
    side = np.array([width, height], np.float64)
    linear[:2, 2] = rng.uniform(-config.shift, config.shift, 2) * side
    tilt = np.eye(3)
    tilt[2, :2] = rng.uniform(-config.perspective, config.perspective, 2) * 2 / side
    middle = (side - 1) / 2
    return normalised(translation(*middle) @ linear @ tilt @ translation(*-middle))


def warped(
    grey: ImageU8, H_view_from_still: ArrayF64, rng: np.random.Generator, config: TesseraViewConfig
) -> ImageU8:
    """Warp a still (H, W) uint8 by a homography to the same size."""
    black = rng.random() < config.black_border
    border = cv2.BORDER_CONSTANT if black else cv2.BORDER_REFLECT_101
    size = (grey.shape[1], grey.shape[0])
    return np.asarray(
        cv2.warpPerspective(
            grey, H_view_from_still, size, flags=cv2.INTER_LINEAR, borderMode=border
        ),
        np.uint8,
    )


def degraded(grey: ImageU8, rng: np.random.Generator, config: TesseraViewConfig) -> ImageU8:
    """Apply light, smoke, highlights, blur, exposure, rim, noise and compression at random.

    Args:
        grey: (H, W) uint8; black areas stay almost black, as the surround of a scope does.
    Returns:
        (H, W) uint8.
    """
    surround = cv2.GaussianBlur(np.minimum(grey, 12).astype(np.float32) / 12.0, (0, 0), 2)
    image: np.ndarray = grey.astype(np.float32)
    if rng.random() < config.light:
        image *= _light(image.shape, rng)
    if rng.random() < config.haze:
        share = rng.uniform(0.1, 0.5) * _clouds(image.shape, rng, cells=4)
        image = image * (1 - share) + share * rng.uniform(110, 220) * surround
    if rng.random() < config.spots:
        image = np.maximum(image, _spots(image.shape, rng) * surround)
    image = _blur(image, rng, config)
    image = 255.0 * (np.clip(image, 0, 255) / 255.0) ** np.exp(rng.uniform(-0.4, 0.4))
    image = image * np.exp(rng.uniform(-0.4, 0.3)) + rng.uniform(-6, 6) * surround
    if rng.random() < config.rim:
        image *= _rim(image.shape, rng)
    if rng.random() < config.noise:
        image = image + _noise(image.shape, rng, config.noise_level)
    out = np.clip(image + 0.5, 0, 255).astype(np.uint8)
    if rng.random() < config.jpeg:
        quality = int(rng.integers(35, 95))
        _, coded = cv2.imencode(".jpg", out, [cv2.IMWRITE_JPEG_QUALITY, quality])
        out = np.asarray(cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE), np.uint8)
    return out


def motion_kernel(length_px: float, angle_rad: float) -> np.ndarray:
    """(K, K) float32 kernel of an anti-aliased line through the middle; its sum is 1."""
    half = int(np.ceil(length_px / 2))
    row, column = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float32)
    along = np.abs(column * np.cos(angle_rad) + row * np.sin(angle_rad))
    across = np.abs(column * np.sin(angle_rad) - row * np.cos(angle_rad))
    kernel = np.clip(1 - across, 0, 1) * np.clip(length_px / 2 + 0.5 - along, 0, 1)
    return np.asarray(kernel / kernel.sum(), np.float32)


def _blur(image: np.ndarray, rng: np.random.Generator, config: TesseraViewConfig) -> np.ndarray:
    if rng.random() < config.motion:
        kernel = motion_kernel(rng.uniform(2, config.motion_px), rng.uniform(0, np.pi))
        image = cv2.filter2D(image, -1, kernel)
    if rng.random() < config.defocus:
        image = cv2.GaussianBlur(image, (0, 0), rng.uniform(0.4, config.defocus_px))
    return image


def _light(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Gain of 1.2 at a random point, falling off to no less than about 0.15."""
    height, width = shape[0], shape[1]
    x = (np.arange(width, dtype=np.float32) / width - rng.uniform(-0.2, 1.2))[None]
    y = (np.arange(height, dtype=np.float32) / height - rng.uniform(-0.2, 1.2))[:, None]
    return np.asarray(1.2 / (1 + rng.uniform(0.2, 2.5) * (x * x + y * y)), np.float32)


def _clouds(shape: tuple[int, ...], rng: np.random.Generator, *, cells: int) -> np.ndarray:
    coarse = rng.random((cells, cells)).astype(np.float32)
    return np.clip(cv2.resize(coarse, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC), 0, 1)


def _spots(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Ellipses with half axes of 1 to 14 px, soft at their edge."""
    plane = np.zeros(shape[:2], np.uint8)
    for _ in range(int(rng.integers(2, 25))):
        at = (int(rng.integers(shape[1])), int(rng.integers(shape[0])))
        axes = (int(rng.integers(1, 8)), int(rng.integers(1, 15)))
        cv2.ellipse(plane, at, axes, float(rng.uniform(0, 180)), 0, 360, 255, -1)
    return cv2.GaussianBlur(plane, (0, 0), 1.0).astype(np.float32)


def _rim(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    plane = np.zeros(shape[:2], np.uint8)
    side = min(shape[:2])
    at = (
        int(shape[1] / 2 + rng.uniform(-0.15, 0.15) * side),
        int(shape[0] / 2 + rng.uniform(-0.15, 0.15) * side),
    )
    cv2.circle(plane, at, int(rng.uniform(0.45, 0.7) * side), 1, -1)
    return plane.astype(np.float32)


def _noise(shape: tuple[int, ...], rng: np.random.Generator, largest: float) -> np.ndarray:
    noise: np.ndarray = rng.standard_normal(shape[:2], np.float32)
    if rng.random() < 0.4:  # noise after a demosaic or a codec is not white
        noise = cv2.GaussianBlur(noise, (0, 0), 0.8) * 2
    return noise * np.float32(rng.uniform(1, largest))


def _rotation(angle_rad: float) -> ArrayF64:
    c, s = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[c, -s], [s, c]])
