"""Stills and the synthetic pairs that are cut from them."""

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
from ml.training.vit.poses import PoseMotions
from ml.types import ArrayBool, ArrayF64, ImageU8

BURNT_IN: tuple[Area, ...] = (
    (0.0, 0.9, 0.22, 1.0),
    (0.86, 0.92, 0.95, 1.0),
    (0.0, 0.965, 1.0, 1.0),
)
"""Where the laparoscopy stills hold text, a logo and a black strip."""

_LEAST_PX = 16
"""Stills are not made narrower."""

CONTEXT = 0.25
"""A crop is cut with this share of its side more around it: the moved camera sees beyond."""

NO_MOTION = MotionConfig(0, 0, 0, 0)
"""The camera stays where it is."""

_MIN_VALID = 0.6
"""Least share of a crop that has to be trusted, if ``_TRIES`` find such a one."""

_TRIES = 12
"""Crops that are drawn to find such a one; where none is, the best of them is taken."""
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
    """A still, where it may be trusted, and its depth if it was given or estimated.

    Attributes:
        name: file stem. image: (H, W, 3) RGB. mask: (H, W) bool. depth: (H, W) or None.
    """

    name: str
    image: ImageU8
    mask: ArrayBool
    depth: ArrayF64 | None


@dataclass(frozen=True, slots=True)
class NovelViewPair:
    """A source crop, its novel view of the same size, and where the source may be trusted."""

    source: ImageU8
    view: NovelView
    valid: ArrayBool


def make_still(path: Path, *, working_px: int, depth_of: DepthOf | None = None) -> MaskedStill:
    """Read a still, scaled to ``working_px`` on its longer side.

    Raises:
        BadInputError: not an image.
    """
    image = resized(read_still(path), long_side_px=working_px, least_px=_LEAST_PX)
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
    mask_rim: bool = False,
    poses: PoseMotions | None = None,
) -> NovelViewPair:
    """A random crop and its novel view.

    Args:
        zoom_out: the crop covers this many times its side of the still, drawn from this range.
        motion: None leaves the camera where it is. look: None leaves the colours as they are.
        relief: of the synthetic depth, where the still has none.
        mask_rim: both views are black outside of what the still may be trusted for, at the same
            place in either: the rim of the scope stands still in a video, and here it would move
            with the tissue.
        poses: the camera moves as there, whatever ``motion`` says of it.
    Source: dinov2-adaptation-endoscopic-matching, section III-B and III-D.
    """
    margin = round(crop_px * CONTEXT)
    side = crop_px + 2 * margin
    motion = motion or NO_MOTION
    matrix, mask = placed_crop(rng, still, side, margin, zoom_out)
    image, depth = _cut(still, matrix, side)
    if mask_rim:
        image = image * mask[:, :, None]
    if depth is None:
        depth = synthetic_depth(rng, (side, side), relief=relief * rng.uniform(0, 1))
    else:
        depth = depth ** rng.uniform(*motion.depth_scale)
    distance = float(depth[side // 2, side // 2])
    if poses is None:
        camera, T_t_from_s = moved_camera(rng, distance, crop_px, motion)
    else:
        width_px = still.image.shape[1] / matrix[0, 0]
        camera, T_t_from_s = poses.moved_camera(
            rng, distance=distance, side_px=side, width_px=width_px
        )
    view = synthesise_view(image, depth, camera=camera, T_t_from_s=T_t_from_s)
    view = _inner(view, margin, crop_px)
    if mask_rim:
        view = _behind_rim(view, mask[margin : margin + crop_px, margin : margin + crop_px])
    if look is not None:
        shown = np.asarray(view.image.any(axis=2)) if mask_rim else view.covered
        seen = with_look(rng, view.image, look) * shown[:, :, None]
        view = NovelView(seen, view.xy_t, view.xy_s, view.visible)
    inner = slice(margin, margin + crop_px)
    return NovelViewPair(np.ascontiguousarray(image[inner, inner]), view, mask[inner, inner])


def _behind_rim(view: NovelView, mask: ArrayBool) -> NovelView:
    """The view through the still's rim: what moved behind it is black, and no longer visible."""
    whole = np.nan_to_num(view.xy_t).round().astype(np.int64)
    column, row = (whole[:, :, axis].clip(0, mask.shape[1 - axis] - 1) for axis in (0, 1))
    image = view.image * mask[:, :, None]
    return NovelView(image, view.xy_t, view.xy_s, view.visible & mask[row, column])


def with_look(rng: np.random.Generator, image: ImageU8, config: LookConfig) -> ImageU8:
    """(H, W, 3) with a random brightness, saturation, contrast, blur and noise.

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
    """A square of ``side`` px whose middle lies well inside the mask, beyond the still black.

    Returns:
        (2, 3) pixels of the crop to those of the still; (side, side) where the still is trusted.
    """
    height, width = still.mask.shape
    best: tuple[float, np.ndarray] | None = None
    for _ in range(_TRIES):
        zoom = min(rng.uniform(*zoom_out), min(height, width) / (side - 2 * margin))
        room = np.array([width, height]) - zoom * (side - 2 * margin)
        corner = rng.uniform(0, 1, 2) * room
        matrix = np.array([[zoom, 0, corner[0]], [0, zoom, corner[1]]], np.float64)
        matrix[:, 2] -= zoom * margin
        share = _resampled(still.mask.astype(np.uint8), matrix, side)
        inner = float(share[margin : side - margin, margin : side - margin].mean())
        if best is None or inner > best[0]:
            best = (inner, matrix)
        if inner >= _MIN_VALID:
            break
    matrix = best[1] if best is not None else np.eye(2, 3)
    mask = _resampled(still.mask.astype(np.uint8), matrix, side) > 0
    return matrix, np.asarray(mask)


def moved_camera(
    rng: np.random.Generator, distance: float, crop_px: int, motion: MotionConfig
) -> tuple[ArrayF64, ArrayF64]:
    """A camera of a crop with its context, and its motion about the point straight ahead.

    Args:
        distance: depth of that point.
    """
    camera = random_camera(rng, crop_px + 2 * round(crop_px * CONTEXT), motion)
    field = distance * crop_px / camera[0, 0]
    return camera, random_motion(rng, distance=distance, field=field, config=motion)


def _cut(still: MaskedStill, matrix: ArrayF64, side: int) -> tuple[ImageU8, ArrayF64 | None]:
    image = np.asarray(_resampled(still.image, matrix, side), np.uint8)
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


def _resampled(plane: ImageU8, matrix: ArrayF64, side: int) -> ImageU8:
    zoom = matrix[0, 0]
    source = (
        cv2.GaussianBlur(plane, (0, 0), 0.4 * zoom) if zoom > 1.2 and plane.ndim == 3 else plane
    )
    flags = (cv2.INTER_LINEAR if plane.ndim == 3 else cv2.INTER_NEAREST) | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(source, matrix, (side, side), flags=flags), np.uint8)


def _inner(view: NovelView, margin: int, side: int) -> NovelView:
    """The middle of a view, its coordinates counted from there."""
    inner = slice(margin, margin + side)
    xy_t = view.xy_t[inner, inner] - np.float32(margin)
    xy_s = view.xy_s[inner, inner] - np.float32(margin)
    image = np.ascontiguousarray(view.image[inner, inner])
    with np.errstate(invalid="ignore"):
        inside = (xy_t >= 0).all(axis=2) & (xy_t <= side - 1).all(axis=2)
    return NovelView(image, xy_t, xy_s, view.visible[inner, inner] & inside)
