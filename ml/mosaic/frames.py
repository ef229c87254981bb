"""Stage 1, survey: which frames are usable, where the scope sees, what stands still on the lens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import MosaicError, ShapeError
from ml.keypoints.masks import checked_mask, scope_mask
from ml.mosaic.config import MosaicConfig
from ml.mosaic.sources import FrameSource, SourceFrame
from ml.types import ArrayBool, ArrayF32, ImageU8, Progress

FOCUS_SIGMA, FOCUS_PERCENTILE = 1.5, 90.0
PATTERN_SIGMA = 4.0
PATTERN_STRENGTH = 1.5
"""Robust spread (grey levels) of the fixed pattern above which a fibre bundle is assumed."""

MIN_PATTERN_FRAMES = 12
NEIGHBOURS = 15


@dataclass(frozen=True, slots=True)
class FrameCheck:
    """One frame's verdict; ``reason`` is "" where usable."""

    index: int
    pts: int
    focus: float
    reason: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass over the source tells.

    Attributes:
        checks: one per frame, in order.
        size_px: (width, height) of the frames.
        scale: working px per frame px.
        mask: (h, w) bool at working size, True inside the scope.
        pattern: (h, w) float32, fixed pattern to subtract from grey, zeros where none.
        is_fibre: the pattern is strong enough to be a fibre bundle's.
    """

    checks: tuple[FrameCheck, ...]
    size_px: tuple[int, int]
    scale: float
    mask: ArrayBool
    pattern: ArrayF32
    is_fibre: bool


def survey_frames(
    source: FrameSource,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
) -> Survey:
    """Decode all frames once; measure each; estimate the mask and the fixed pattern.

    Raises:
        MosaicError: no frame at all, or none usable.
        ShapeError: the given mask is not of the frames' size.
    """
    size_px: tuple[int, int] | None = None
    greys: list[ImageU8] = []
    measures: list[tuple[SourceFrame, float, float, float, str]] = []
    wanted = set(np.linspace(0, source.count - 1, config.sample_frames).astype(int).tolist())
    for done, frame in enumerate(source.frames()):
        progress(done, source.count, "survey")
        if frame.rgb is not None and size_px is None:
            size_px = (frame.rgb.shape[1], frame.rgb.shape[0])
        reason = _unfit(frame, size_px)
        if reason or size_px is None or frame.rgb is None:
            measures.append((_bare(frame), 0.0, 0.0, 0.0, reason))
            continue
        grey = work_grey(frame.rgb, work_scale(size_px, config))
        if done in wanted:
            greys.append(grey)
        measures.append((_bare(frame), *_measure(grey), ""))
    if size_px is None:
        raise MosaicError(f"survey: none of {len(measures)} frames could be read")
    checks = _verdicts(measures, config)
    pattern, is_fibre = _fixed_pattern(greys)
    return Survey(
        checks=checks,
        size_px=size_px,
        scale=work_scale(size_px, config),
        mask=_mask(greys, mask, size_px),
        pattern=pattern,
        is_fibre=is_fibre,
    )


def usable_frames(source: FrameSource, survey: Survey) -> Iterator[tuple[int, ImageU8]]:
    """Yield (position, rgb) of each usable frame; position counts all frames of the source."""
    for position, frame in enumerate(source.frames()):
        is_usable = position < len(survey.checks) and not survey.checks[position].reason
        if is_usable and frame.rgb is not None:
            yield position, frame.rgb


def work_scale(size_px: tuple[int, int], config: MosaicConfig) -> float:
    """Working px per frame px: 1 for small frames, else so that the longest side is work_px."""
    return min(1.0, config.work_px / max(size_px))


def work_grey(rgb: ImageU8, scale: float) -> ImageU8:
    """Grey at working size."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    if scale < 1.0:
        size = (round(rgb.shape[1] * scale), round(rgb.shape[0] * scale))
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(grey, np.uint8)


def _bare(frame: SourceFrame) -> SourceFrame:
    return SourceFrame(frame.index, frame.pts, None)


def _unfit(frame: SourceFrame, size_px: tuple[int, int] | None) -> str:
    if frame.rgb is None:
        return "the frame could not be decoded"
    size = (frame.rgb.shape[1], frame.rgb.shape[0])
    if size_px is not None and size != size_px:
        return f"size {size[0]} x {size[1]} differs from {size_px[0]} x {size_px[1]} px"
    return ""


def _measure(grey: ImageU8) -> tuple[float, float, float]:
    """(focus, brightness, saturated share) inside the bright part of the frame."""
    inside = grey > 14
    if inside.mean() < 0.02:
        return 0.0, float(grey.mean()), 0.0
    rim = 2 * (min(grey.shape) // 16) + 3  # the rim's own edge would pass for sharpness
    core = cv2.erode(inside.astype(np.uint8), np.ones((rim, rim), np.uint8)).astype(np.bool_)
    if not core.any():
        core = inside
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), FOCUS_SIGMA)
    edges = np.abs(cv2.Laplacian(smooth, cv2.CV_32F)[core])
    brightness = float(grey[inside].mean())
    # a percentile: highlights stay sharp in a blurred frame, but are few
    focus = float(np.percentile(edges, FOCUS_PERCENTILE)) / max(brightness, 1.0)
    return focus, brightness if inside.mean() > 0.1 else 0.0, float((grey[inside] >= 250).mean())


def _verdicts(
    measures: list[tuple[SourceFrame, float, float, float, str]], config: MosaicConfig
) -> tuple[FrameCheck, ...]:
    focus = np.array([m[1] for m in measures])
    fit = np.array([not m[4] and m[2] >= config.min_brightness for m in measures])
    checks = []
    for i, (frame, own, brightness, saturated, unfit) in enumerate(measures):
        low, high = max(0, i - NEIGHBOURS), i + NEIGHBOURS + 1
        near = focus[low:high][fit[low:high]]
        usual = float(np.median(near)) if len(near) else 0.0
        reason = unfit or _verdict(own, usual, brightness, saturated, config)
        checks.append(FrameCheck(frame.index, frame.pts, own, reason))
    return tuple(checks)


def _verdict(
    focus: float, usual: float, brightness: float, saturated: float, config: MosaicConfig
) -> str:
    if brightness < config.min_brightness:
        return f"too dark: mean grey {brightness:.0f}, needs {config.min_brightness:.0f}"
    if saturated > 0.5:
        return f"overexposed: {saturated:.0%} of the view is saturated"
    if focus < config.min_focus * usual:
        return f"blurred: sharpness {focus / usual:.0%} of its neighbours'"
    if focus < 1e-4:
        return "no structure: the view is uniform"
    return ""


def _fixed_pattern(greys: list[ImageU8]) -> tuple[ArrayF32, bool]:
    """High-passed temporal median: what stands still while the scene moves."""
    if len(greys) < MIN_PATTERN_FRAMES:
        shape = greys[0].shape if greys else (1, 1)
        return np.zeros(shape, np.float32), False
    fine = np.stack(
        [
            g.astype(np.float32) - cv2.GaussianBlur(g.astype(np.float32), (0, 0), PATTERN_SIGMA)
            for g in greys
        ]
    )
    pattern = np.median(fine, axis=0).astype(np.float32)
    bright = np.median(np.stack(greys), axis=0) > 30
    spread = 1.4826 * float(np.median(np.abs(pattern[bright]))) if bright.any() else 0.0
    is_fibre = spread > PATTERN_STRENGTH  # a median: a few fixed highlights are no fibre bundle
    return pattern if is_fibre else np.zeros_like(pattern), is_fibre


def _mask(
    greys: list[ImageU8], given: npt.NDArray[Any] | None, size_px: tuple[int, int]
) -> ArrayBool:
    if not greys:
        raise MosaicError("survey: no sampled frame could be read")
    height, width = greys[0].shape
    if given is None:
        return scope_mask(np.max(np.stack(greys), axis=0), margin_px=2)
    plane = np.asarray(given)
    if plane.shape[:2] != (size_px[1], size_px[0]):
        expected = f"({size_px[1]}, {size_px[0]}) as the frames"
        raise ShapeError("mask", expected=expected, actual=str(plane.shape))
    inside = checked_mask(plane, (size_px[1], size_px[0])).astype(np.uint8)
    small = cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST)
    return small.astype(np.bool_)
