"""Stills and their synthetic pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.keypoints.masks import scope_mask
from ml.keypoints.pixels import to_grey
from ml.training.common.stills import Area, areas_mask, read_still, resized
from ml.training.vit.depth import synthetic_depth
from ml.training.vit.novel_view import (
    MotionConfig,
    NovelView,
    random_camera,
    random_motion,
    synthesise_view,
)
from ml.types import ArrayBool, ArrayF64, ImageU8

BURNT_IN: tuple[Area, ...] = (
    (0.0, 0.9, 0.22, 1.0),
    (0.86, 0.92, 0.95, 1.0),
    (0.0, 0.965, 1.0, 1.0),
)
"""Areas of the laparoscopy stills with text, a logo and a black strip."""

_MIN_PX = 16
"""Least side of a still."""

CONTEXT = 0.25
"""Margin of a crop as a share of its side: the moved camera sees beyond the crop."""

NO_MOTION = MotionConfig(0, 0, 0, 0)
"""Motion of a fixed camera."""

_MIN_VALID = 0.6
"""Least share of a crop inside the mask, if ``_TRIES`` draws find such a crop."""

_TRIES = 12
"""Largest number of draws of a crop; the best one is taken."""
DepthOf = Callable[[str, ImageU8], ArrayF64]
"""Depth of a whole still by its stem: (H, W, 3) to (H, W), median 1."""


@dataclass(frozen=True, slots=True)
class LookConfig:
    """Photometric shifts of the novel view; the paper has the first two."""

    brightness: float = 0.35  # largest log factor
    saturation: float = 0.4  # largest log factor
    contrast: float = 0.2  # largest log factor
    blur_px: float = 1.2  # largest sigma
    noise: float = 6.0  # largest deviation, grey levels


@dataclass(frozen=True, slots=True)
class MaskedStill:
    """A still, the mask of its usable area, and its depth if it is known.

    Attributes:
        name: file stem.
        image: (H, W, 3) RGB.
        mask: (H, W) bool.
        depth: (H, W) or None.
    """

    name: str
    image: ImageU8
    mask: ArrayBool
    depth: ArrayF64 | None


@dataclass(frozen=True, slots=True)
class NovelViewPair:
    """A source crop, its novel view of the same size, and the mask of its usable area."""

    source: ImageU8
    view: NovelView
    valid: ArrayBool


def make_still(path: Path, *, working_px: int, depth_of: DepthOf | None = None) -> MaskedStill:
    """Read a still, scaled to ``working_px`` on its longer side.

    Raises:
        BadInputError: not an image.
    """
    image = resized(read_still(path), long_side_px=working_px, min_px=_MIN_PX)
    mask = scope_mask(to_grey(image), margin_px=4) & ~areas_mask(image.shape, BURNT_IN)
    depth = None if depth_of is None else depth_of(path.stem, image)
    return MaskedStill(path.stem, image, mask, depth)


def draw_pair(
    rng: np.random.Generator,
    still: MaskedStill,
    *,
    crop_px: int,
    zoom_out: tuple[float, float] = (1.0, 1.0),
    motion: MotionConfig | None = None,
    look: LookConfig | None = None,
    relief: float = 0.35,
) -> NovelViewPair:
    """Draw a crop and its novel view.

    Args:
        zoom_out: range of the pixels of the still per pixel of the crop.
        motion: None for a fixed camera.
        look: None for unchanged colours.
        relief: of the synthetic depth, if the still has no depth.
    Source: dinov2-adaptation-endoscopic-matching, section III-B and III-D.
    """
    margin = round(crop_px * CONTEXT)
    side = crop_px + 2 * margin
    motion = motion or NO_MOTION
    matrix, mask = placed_crop(rng, still, side, margin, zoom_out)
    image, depth = _crop(still, matrix, side)
    if depth is None:
        depth = synthetic_depth(rng, (side, side), relief=relief * rng.uniform(0, 1))
    else:
        depth = depth ** rng.uniform(*motion.depth_scale)
    distance = float(depth[side // 2, side // 2])
    camera, T_t_from_s = moved_camera(rng, distance, crop_px, motion)
    view = synthesise_view(image, depth, camera=camera, T_t_from_s=T_t_from_s)
    view = _inner(view, margin, crop_px)
    if look is not None:
        changed = with_look(rng, view.image, look) * view.covered[:, :, None]
        view = NovelView(changed, view.xy_t, view.xy_s, view.visible)
    inner = slice(margin, margin + crop_px)
    return NovelViewPair(np.ascontiguousarray(image[inner, inner]), view, mask[inner, inner])


def with_look(rng: np.random.Generator, image: ImageU8, config: LookConfig) -> ImageU8:
    """Change brightness, saturation, contrast, blur and noise of (H, W, 3) at random.

    Source: dinov2-adaptation-endoscopic-matching, section III-D: random brightness and saturation
    shifts; the others are ours.
    """
    values = image.astype(np.float32)
    grey = values.mean(axis=2, keepdims=True)
    values = grey + (values - grey) * np.exp(rng.uniform(-1, 1) * config.saturation)
    middle = float(values.mean())
    values = middle + (values - middle) * np.exp(rng.uniform(-1, 1) * config.contrast)
    values = values * np.exp(rng.uniform(-1, 1) * config.brightness)
    sigma = rng.uniform(0, 1) * config.blur_px
    if sigma > 0.3:
        values = cv2.GaussianBlur(values, (0, 0), sigma)
    values = values + rng.normal(0, 1, values.shape) * rng.uniform(0, 1) * config.noise
    return np.asarray(np.clip(values + 0.5, 0, 255).astype(np.uint8))


def placed_crop(
    rng: np.random.Generator,
    still: MaskedStill,
    side: int,
    margin: int,
    zoom_out: tuple[float, float],
) -> tuple[ArrayF64, ArrayBool]:
    """Draw a square crop of ``side`` px that is well inside the mask.

    Returns:
        (2, 3) map of pixels of the crop to those of the still; (side, side) bool mask.
    """
    height, width = still.mask.shape
    best: tuple[float, np.ndarray] | None = None
    for _ in range(_TRIES):
        zoom = min(rng.uniform(*zoom_out), min(height, width) / (side - 2 * margin))
        room = np.array([width, height]) - zoom * (side - 2 * margin)
        corner = rng.uniform(0, 1, 2) * room
        matrix = np.array([[zoom, 0, corner[0]], [0, zoom, corner[1]]], np.float64)
        matrix[:, 2] -= zoom * margin
        share = _resample(still.mask.astype(np.uint8), matrix, side)
        inner = float(share[margin : side - margin, margin : side - margin].mean())
        if best is None or inner > best[0]:
            best = (inner, matrix)
        if inner >= _MIN_VALID:
            break
    matrix = best[1] if best is not None else np.eye(2, 3)
    mask = _resample(still.mask.astype(np.uint8), matrix, side) > 0
    return matrix, np.asarray(mask)


def moved_camera(
    rng: np.random.Generator, distance: float, crop_px: int, motion: MotionConfig
) -> tuple[ArrayF64, ArrayF64]:
    """Draw a camera of a crop with its margin, and its motion about the point in the middle.

    Args:
        distance: depth of that point.
    """
    camera = random_camera(rng, crop_px + 2 * round(crop_px * CONTEXT), motion)
    field = distance * crop_px / camera[0, 0]
    return camera, random_motion(rng, distance=distance, field=field, config=motion)


def _crop(still: MaskedStill, matrix: ArrayF64, side: int) -> tuple[ImageU8, ArrayF64 | None]:
    image = np.asarray(_resample(still.image, matrix, side), np.uint8)
    depth = None
    if still.depth is not None:
        depth = cv2.warpAffine(
            still.depth,
            matrix,
            (side, side),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        ).astype(np.float64)
    return image, depth


def _resample(plane: ImageU8, matrix: ArrayF64, side: int) -> ImageU8:
    zoom = matrix[0, 0]
    source = (
        cv2.GaussianBlur(plane, (0, 0), 0.4 * zoom) if zoom > 1.2 and plane.ndim == 3 else plane
    )
    flags = (cv2.INTER_LINEAR if plane.ndim == 3 else cv2.INTER_NEAREST) | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(source, matrix, (side, side), flags=flags), np.uint8)


def _inner(view: NovelView, margin: int, side: int) -> NovelView:
    """Cut the middle of a view, with its coordinates."""
    inner = slice(margin, margin + side)
    xy_t = view.xy_t[inner, inner] - np.float32(margin)
    xy_s = view.xy_s[inner, inner] - np.float32(margin)
    image = np.ascontiguousarray(view.image[inner, inner])
    with np.errstate(invalid="ignore"):
        inside = (xy_t >= 0).all(axis=2) & (xy_t <= side - 1).all(axis=2)
    return NovelView(image, xy_t, xy_s, view.visible[inner, inner] & inside)
