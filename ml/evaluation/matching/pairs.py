"""Pairs of an image and its copy under a known transform, by family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from ml.evaluation.common.images import EvaluationImage
from ml.geometry import normalised, transform_points, translation
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

CORE_FAMILIES = ("rotation", "translation", "scale", "blur", "viewpoint")
"""The papers' families, at the values of graph-ssl-endoscopic-matching, section 4.3.1."""

WIDE_FAMILIES = ("rotation_wide", "scale_wide")
"""Families beyond the papers': rotations up to 180 degrees, and larger changes of scale."""

DARK_FAMILY = "dark"
"""Two dimmed views, with noise and the same fixed pattern of a sensor; scored only if requested."""

SMOOTH_FAMILY = "smooth"
"""Two dimmed and blurred views, with noise and no fixed pattern; scored only if requested."""

FAMILIES = (*CORE_FAMILIES, *WIDE_FAMILIES, DARK_FAMILY, SMOOTH_FAMILY)
VALUES: dict[str, tuple[float, ...]] = {
    "rotation": (5.0, 10.0, 15.0),
    "translation": (4.0, 6.0, 8.0, 10.0),
    "scale": (0.9, 0.95, 1.05, 1.1, 1.15),
    "blur": (3.0, 5.0, 10.0, 15.0),
    "viewpoint": (0.0, 1.0, 2.0, 3.0),
    "rotation_wide": (30.0, 60.0, 90.0, 135.0, 180.0),
    "scale_wide": (0.7, 0.8, 1.25, 1.4),
    "dark": (0.1, 0.2, 0.4, 0.8),
    "smooth": (1.0, 2.0, 3.0, 4.0),
}
"""Values by family: degrees, pixels, factors, kernel sizes; for ``viewpoint`` numbers of draws; for
``dark`` shares of the light; for ``smooth`` standard deviations of the blur in pixels."""

NOISE_SD = 4.0
"""Grey levels of the noise on every viewpoint pair."""

DARK_NOISE_SD, PATTERN_SD = 2.0, 4.0
"""Grey levels of the noise and of the fixed pattern of a dark pair."""

SMOOTH_LIGHT, SMOOTH_NOISE_SD = 0.25, 1.0
"""Share of the light, and grey levels of the noise, of a smooth pair."""


@dataclass(frozen=True, slots=True)
class WarpedPair:
    """An image, its warped copy, and the truth between them.

    Attributes:
        family, value: one of ``FAMILIES`` and of its ``VALUES``.
        source: name of the image.
        a, b: (H, W, 3) uint8.
        H_b_from_a: (3, 3) float64.
        mask_a, mask_b: (H, W) bool or None.
    """

    family: str
    value: float
    source: str
    a: ImageU8
    b: ImageU8
    H_b_from_a: ArrayF64
    mask_a: ArrayBool | None = None
    mask_b: ArrayBool | None = None

    def partners(self, xy: ArrayF32) -> tuple[ArrayF32, ArrayBool]:
        """Positions in b of points of a, (N, 2) float32, and whether they are inside, (N,) bool."""
        partner = transform_points(self.H_b_from_a, xy).astype(np.float32)
        size = np.array([self.b.shape[1] - 1, self.b.shape[0] - 1])
        return partner, np.asarray(((partner >= 0) & (partner <= size)).all(axis=1))


def make_pairs(
    images: Sequence[EvaluationImage],
    *,
    families: Iterable[str] = (*CORE_FAMILIES, *WIDE_FAMILIES),
    homographies: Sequence[ArrayF64] = (),
    per_family: int | None = None,
    seed: int = 7,
) -> list[WarpedPair]:
    """Warped copies of each image.

    Args:
        homographies: (3, 3) each, in units of the image's width and height (see
            ``real_homographies``); every other viewpoint pair takes one, the rest are random.
        per_family: at most this many values of a family per image, a different choice for each;
            None takes all.
    """
    pairs = []
    for number, image in enumerate(images):
        rng = np.random.default_rng((seed, number))
        for family in families:
            values = VALUES[family]
            count = len(values) if per_family is None else min(per_family, len(values))
            first = number * count
            for k in range(count):
                value = values[(first + k) % len(values)]
                pairs.append(_make(image, family, value, homographies, rng))
    return pairs


def as_u8(mask: ArrayBool | None) -> ImageU8 | None:
    """Convert a mask to 0 and 255; None stays None."""
    return None if mask is None else mask.astype(np.uint8) * np.uint8(255)


def motion_blur_kernel(size_px: float, angle_deg: float) -> ArrayF32:
    """A centred line of ``size_px`` length as an odd square kernel that sums to 1.

    Source: graph-ssl-endoscopic-matching, section 4.3.1 (kernels 3, 5, 10 and 15); departs from it
    by the direction, which the paper does not state: it is drawn at random.
    """
    side = 2 * int(np.ceil(size_px / 2)) + 1
    kernel = np.zeros((side, side), np.float64)
    steps = np.linspace(-(size_px - 1) / 2, (size_px - 1) / 2, 8 * side)
    x = steps * np.cos(np.radians(angle_deg)) + side // 2
    y = steps * np.sin(np.radians(angle_deg)) + side // 2
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = x - column, y - row
    for dx, dy, weight in (
        (0, 0, (1 - fx) * (1 - fy)),
        (1, 0, fx * (1 - fy)),
        (0, 1, (1 - fx) * fy),
        (1, 1, fx * fy),
    ):
        np.add.at(kernel, ((row + dy).clip(0, side - 1), (column + dx).clip(0, side - 1)), weight)
    return np.asarray(kernel / kernel.sum(), np.float32)


def _make(
    image: EvaluationImage,
    family: str,
    value: float,
    homographies: Sequence[ArrayF64],
    rng: np.random.Generator,
) -> WarpedPair:
    height, width = image.rgb.shape[:2]
    centre = ((width - 1) / 2, (height - 1) / 2)
    if family == "blur":
        kernel = motion_blur_kernel(value, float(rng.uniform(0, 180)))
        blurred = cv2.filter2D(image.rgb, -1, kernel, borderType=cv2.BORDER_REFLECT_101)
        b = np.asarray(blurred, np.uint8)
        same = np.eye(3)
        return WarpedPair(family, value, image.name, image.rgb, b, same, image.mask, image.mask)
    if family == "viewpoint":
        matrix = _viewpoint(int(value), homographies, rng, width, height)
        return _warp(image, family, value, matrix, noise=rng)
    if family in {DARK_FAMILY, SMOOTH_FAMILY}:
        pair = _warp(image, family, value, random_view(rng, width, height))
        return _dim(pair, rng) if family == DARK_FAMILY else _smooth(pair, rng)
    if family == "translation":
        sign = rng.choice([-1.0, 1.0], 2)
        matrix = translation(value * sign[0], value * sign[1])
    elif family.startswith("scale"):
        matrix = _similarity_about(centre, 0.0, value)
    else:
        matrix = _similarity_about(centre, value * float(rng.choice([-1.0, 1.0])), 1.0)
    return _warp(image, family, value, matrix)


def _viewpoint(
    draw: int,
    homographies: Sequence[ArrayF64],
    rng: np.random.Generator,
    width: int,
    height: int,
) -> ArrayF64:
    if len(homographies) and draw % 2 == 0:
        unit = np.diag([width, height, 1.0])
        matrix = unit @ homographies[int(rng.integers(len(homographies)))] @ np.linalg.inv(unit)
        return normalised(matrix)
    return random_view(rng, width, height)


def random_view(rng: np.random.Generator, width: int, height: int) -> ArrayF64:
    """A small random perspective: corners moved by up to 6 %, turned by up to 12 degrees."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    moved = corners + rng.uniform(-0.06, 0.06, (4, 2)) * (width, height)
    tilt = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
    turn = _similarity_about((width / 2, height / 2), float(rng.uniform(-12, 12)), 1.0)
    matrix = turn @ tilt
    return normalised(matrix)


def _warp(
    image: EvaluationImage,
    family: str,
    value: float,
    matrix: ArrayF64,
    *,
    noise: np.random.Generator | None = None,
) -> WarpedPair:
    size = (image.rgb.shape[1], image.rgb.shape[0])
    b = np.asarray(cv2.warpPerspective(image.rgb, matrix, size, flags=cv2.INTER_LINEAR), np.uint8)
    if noise is not None:
        b = np.clip(b + noise.normal(0.0, NOISE_SD, b.shape), 0, 255).astype(np.uint8)
    mask_b = None
    if image.mask is not None:
        plane = cv2.warpPerspective(image.mask.astype(np.uint8), matrix, size, flags=0)
        mask_b = np.asarray(plane).astype(np.bool_)
    return WarpedPair(family, value, image.name, image.rgb, b, matrix, image.mask, mask_b)


def _dim(pair: WarpedPair, rng: np.random.Generator) -> WarpedPair:
    pattern = rng.normal(0.0, PATTERN_SD, pair.a.shape)

    def dimmed(image: ImageU8) -> ImageU8:
        levels = pair.value * image + pattern + rng.normal(0.0, DARK_NOISE_SD, image.shape)
        return np.clip(np.rint(levels), 0, 255).astype(np.uint8)

    return replace(pair, a=dimmed(pair.a), b=dimmed(pair.b))


def _smooth(pair: WarpedPair, rng: np.random.Generator) -> WarpedPair:
    def blurred(image: ImageU8) -> ImageU8:
        levels = SMOOTH_LIGHT * cv2.GaussianBlur(image.astype(np.float32), (0, 0), pair.value)
        levels = levels + rng.normal(0.0, SMOOTH_NOISE_SD, image.shape)
        return np.clip(np.rint(levels), 0, 255).astype(np.uint8)

    return replace(pair, a=blurred(pair.a), b=blurred(pair.b))


def _similarity_about(centre: tuple[float, float], angle_deg: float, scale: float) -> ArrayF64:
    return np.vstack([cv2.getRotationMatrix2D(centre, angle_deg, scale), [0.0, 0.0, 1.0]])
