"""Static parts of the image while the scene moves: rim, overlays, fibres, shading of the lamp.

All of it is learned from frames that moved, because a scope at rest shows nothing new, and from the
first ``config.fixed_pattern_frames`` of these only, so that later frames change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import MosaicError, ShapeError
from ml.keypoints.masks import checked_mask, scope_mask
from ml.types import ArrayBool, ArrayF32, ImageU8

THUMB_PX, MOVED_LEVEL = 64, 1.0
"""A frame moved when its thumbnail, the mean taken off, differs by this many grey levels on average
from the last one that did: noise of 4 levels makes 0.4, fetoscopy moves by 2.6 and more a frame."""

GRAIN_SIGMA, COARSE_SIGMA, SHADE_SIGMA = 1.5, 3.0, 25.0
"""Gaussians, px: what is finer than the first is a fibre's grain; the second averages fibres away;
what is coarser than the third is the lamp's shading."""

PATTERN_STRENGTH, PATTERN_CORRELATION = 1.5, 0.4
"""Robust spread (grey levels) of the static grain, and its correlation between the halves of the
video, above which a fibre bundle is assumed: in vivo fetoscopy has 3.5 and 0.8."""

MOVING_SHARE = 0.7
"""The scene must vary in time by this share of the static picture's contrast: otherwise nothing
moved, and the temporal median is the scene."""

PATTERN_RIM_PX = 15
"""Margin excluded from the decision, px: the rim is static, with a stronger edge than any fibre."""

MIN_PATTERN_FRAMES = 12
"""Six in each half of the video: with fewer, the temporal median still shows the scene."""

MIN_CHANGE = 4.0
"""Median change of a px over time (grey levels) above which static px are an overlay."""

STATIC_SHARE, STATIC_MAX = 0.2, 2.5
"""An overlay's px change by less than this share of the usual, and than this many grey levels: the
noise of compression over burnt-in text."""

SHADING_RANGE = (0.3, 1.5)
"""The fitted fall-off is trusted within this; beyond, the polynomial runs away at the rim."""

OVERLAY_GROW_PX = 4
"""The soft edge that compression gives to text."""


@dataclass(frozen=True, slots=True)
class PatternFrames:
    """Evenly chosen frames among those that moved, to learn the fixed pattern from.

    Attributes:
        positions: of the frames.
        greys: the same frames, (h, w) uint8 at working size.
        moved: how many frames moved so far.
        every: one in this many of these is kept.
        thumb: of the last one that moved.
    """

    positions: tuple[int, ...] = ()
    greys: tuple[ImageU8, ...] = ()
    moved: int = 0
    every: int = 1
    thumb: ArrayF32 | None = None


class PatternSampler:
    """Samples frames that differ from the previous one.

    Keeps ``count`` to ``2 * count`` of the first ``max_moved`` such frames, evenly spaced.
    """

    def __init__(self, earlier: PatternFrames, *, count: int, max_moved: int) -> None:
        self._positions, self._greys = list(earlier.positions), list(earlier.greys)
        self._moved, self._every, self._thumb = earlier.moved, earlier.every, earlier.thumb
        self._count, self._max_moved = count, max_moved

    def add(self, position: int, grey: ImageU8, *, is_lit: bool) -> None:
        """Add a frame, (h, w) at working size. Dark frames are skipped, except the first."""
        if self._moved >= self._max_moved or (self._moved and not is_lit):
            return
        thumb = _thumbnail(grey)
        if self._thumb is not None and float(np.abs(thumb - self._thumb).mean()) < MOVED_LEVEL:
            return
        self._thumb = thumb
        if self._moved % self._every == 0:
            self._positions.append(position)
            self._greys.append(grey)
        self._moved += 1
        if len(self._positions) > 2 * self._count:
            self._positions, self._greys = self._positions[::2], self._greys[::2]
            self._every *= 2

    def frames(self) -> PatternFrames:
        """Frames collected so far."""
        return PatternFrames(
            tuple(self._positions), tuple(self._greys), self._moved, self._every, self._thumb
        )


def _thumbnail(grey: ImageU8) -> ArrayF32:
    share = THUMB_PX / max(grey.shape)
    size = (max(1, round(grey.shape[1] * share)), max(1, round(grey.shape[0] * share)))
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    return np.asarray(small - small.mean(), np.float32)


@dataclass(frozen=True, slots=True)
class FixedPattern:
    """Static parts of the image; the fields are those of ``Survey``."""

    mask: ArrayBool
    pattern: ArrayF32
    is_fibre: bool
    shading: ArrayF32

    def resized(self, size: tuple[int, int]) -> FixedPattern:
        """Resize to working images of another (width, height), without the fibre pattern."""
        return FixedPattern(
            mask=cv2.resize(self.mask.astype(np.float32), size) > 0.5,
            pattern=np.zeros(size[::-1], np.float32),
            is_fibre=False,
            shading=np.asarray(cv2.resize(self.shading, size), np.float32),
        )


def estimate_fixed_pattern(
    greys: list[ImageU8], mask: npt.NDArray[Any] | None, size_px: tuple[int, int]
) -> FixedPattern:
    """Estimate the static parts from (h, w) frames at working size.

    Args:
        mask: at full size, or None to estimate it.
        size_px: (width, height) of the full frames.
    Raises:
        MosaicError: no frame.
        ShapeError: the mask is not of the frames' size.
    """
    pattern, is_fibre = _fixed_pattern(greys)
    inside = _mask(greys, mask, size_px)
    if not is_fibre:
        inside = inside & ~_overlay(greys, inside)
    return FixedPattern(inside, pattern, is_fibre, _shading(greys, inside))


def _overlay(greys: list[ImageU8], inside: ArrayBool) -> ArrayBool:
    """(h, w) bool: burnt-in text, logos, dead px, black bars: static while the scene moves."""
    if len(greys) < MIN_PATTERN_FRAMES:
        return np.zeros(inside.shape, np.bool_)
    change = (
        np.stack([cv2.GaussianBlur(g, (3, 3), 0) for g in greys]).astype(np.float32).std(axis=0)
    )
    usual = float(np.median(change[inside])) if inside.any() else 0.0
    if usual < MIN_CHANGE:
        return np.zeros(inside.shape, np.bool_)
    static = (change < min(STATIC_SHARE * usual, STATIC_MAX)) & inside
    if static[inside].mean() > 0.4:
        return np.zeros(inside.shape, np.bool_)
    size = 2 * OVERLAY_GROW_PX + 1
    grown = cv2.dilate(static.astype(np.uint8), np.ones((size, size), np.uint8))
    return np.asarray(grown > 0) & inside


def _shading(greys: list[ImageU8], inside: ArrayBool) -> ArrayF32:
    """(h, w) float32: an even polynomial of the distance to the middle, fitted to the mean.

    Over a moving scene the mean keeps the lamp and loses the organ; of few frames it does not.
    """
    flat = np.ones(inside.shape, np.float32)
    if len(greys) < MIN_PATTERN_FRAMES or inside.sum() < 500:
        return flat
    mean = np.mean(np.stack(greys).astype(np.float32), axis=0)
    rows, columns = np.nonzero(inside)
    y, x = np.mgrid[: inside.shape[0], : inside.shape[1]].astype(np.float32)
    radius = np.hypot(x - columns.mean(), y - rows.mean())
    radius = radius / max(float(radius[inside].max()), 1.0)
    ring = np.clip((radius * 20).astype(np.int64), 0, 19)
    middle = np.array(
        [
            np.median(mean[inside & (ring == i)]) if (inside & (ring == i)).any() else np.nan
            for i in range(20)
        ]
    )
    is_measured = np.isfinite(middle) & (middle > 4)
    at = (np.arange(20) + 0.5) / 20
    if is_measured.sum() < 8:
        return flat
    basis = np.stack([np.ones(20), at**2, at**4], axis=1)
    terms = np.linalg.lstsq(basis[is_measured], middle[is_measured], rcond=None)[0]
    fitted = terms[0] + terms[1] * radius**2 + terms[2] * radius**4
    share = fitted / max(float(fitted[inside].mean()), 1.0)
    return np.asarray(np.clip(share, *SHADING_RANGE), np.float32)


def _fixed_pattern(greys: list[ImageU8]) -> tuple[ArrayF32, bool]:
    """Temporal median without its coarse shading, and whether it is a fibre bundle's.

    A fibre bundle is recognised by its grain, which is the same in both halves of the video, and by
    a scene that moves under it: in a video without motion the median is the scene. All static
    structure is then removed, because its coarser part would bias a direct alignment.
    """
    shape = greys[0].shape if greys else (1, 1)
    nothing = np.zeros(shape, np.float32)
    if len(greys) < MIN_PATTERN_FRAMES:
        return nothing, False
    stack = np.stack(greys)
    static = np.median(stack, axis=0).astype(np.float32)
    size = 2 * PATTERN_RIM_PX + 1
    inside = cv2.erode((static > 30).astype(np.uint8), np.ones((size, size), np.uint8)) > 0
    if inside.sum() < 500:
        return nothing, False
    halves = [np.median(half, axis=0).astype(np.float32) for half in np.array_split(stack, 2)]
    first, second = (_grain(half)[inside] for half in halves)
    spread = 1.4826 * float(np.median(np.abs(_grain(static)[inside])))
    correlation = float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else 0.0
    coarse = cv2.GaussianBlur(static, (0, 0), COARSE_SIGMA)
    scene = float((coarse - cv2.GaussianBlur(static, (0, 0), SHADE_SIGMA))[inside].std())
    moved = np.median(
        [
            (cv2.GaussianBlur(g.astype(np.float32), (0, 0), COARSE_SIGMA) - coarse)[inside].std()
            for g in greys[:: max(1, len(greys) // 9)]
        ]
    )
    if (
        spread < PATTERN_STRENGTH
        or correlation < PATTERN_CORRELATION
        or moved < MOVING_SHARE * scene
    ):
        return nothing, False
    return np.asarray(static - cv2.GaussianBlur(static, (0, 0), SHADE_SIGMA), np.float32), True


def _grain(grey: ArrayF32) -> ArrayF32:
    return np.asarray(grey - cv2.GaussianBlur(grey, (0, 0), GRAIN_SIGMA), np.float32)


def _mask(
    greys: list[ImageU8], mask: npt.NDArray[Any] | None, size_px: tuple[int, int]
) -> ArrayBool:
    if not greys:
        raise MosaicError("survey: no sampled frame could be read")
    height, width = greys[0].shape
    if mask is None:
        return scope_mask(np.max(np.stack(greys), axis=0), margin_px=2)
    plane = np.asarray(mask)
    if plane.shape[:2] != (size_px[1], size_px[0]):
        expected = f"({size_px[1]}, {size_px[0]}) as the frames"
        raise ShapeError("mask", expected=expected, actual=str(plane.shape))
    inside = checked_mask(plane, (size_px[1], size_px[0])).astype(np.uint8)
    small = cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST)
    return small.astype(np.bool_)
