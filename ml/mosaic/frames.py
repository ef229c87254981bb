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
from ml.mosaic.quality import FrameMeasure, measure_frame, verdicts
from ml.mosaic.sources import FrameSource, SourceFrame
from ml.types import ArrayBool, ArrayF32, ImageU8, Progress

GRAIN_SIGMA, COARSE_SIGMA, SHADE_SIGMA = 1.5, 3.0, 25.0
PATTERN_STRENGTH, PATTERN_SAME = 1.5, 0.4
"""Robust spread (grey levels) of the still grain, and its correlation between the halves of the
video, above which a fibre bundle is assumed: in vivo fetoscopy has 3.5 and 0.8."""

MOVING_SHARE = 0.7
PATTERN_RIM_PX = 15
MIN_PATTERN_FRAMES = 12
LIVELY = 4.0
"""Median change of a px over time (grey levels) from which what does not change is an overlay."""

STILL_SHARE, STILL_MAX = 0.2, 2.5
SHADING_RANGE = (0.3, 1.5)

OVERLAY_GROW_PX = 4


@dataclass(frozen=True, slots=True)
class FrameCheck:
    """One frame's verdict; ``reason`` is "" where usable."""

    index: int
    pts: int
    focus: float
    reason: str
    reason_code: str = ""
    exposure: float = 0.0
    time_s: float | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass over the source tells.

    Attributes:
        checks: one per frame, in order.
        size_px: (width, height) of the frames.
        scale: working px per frame px.
        mask: (h, w) bool at working size, True inside the scope and off burnt-in text, logos and
            dead px.
        pattern: (h, w) float32, fixed pattern to subtract from grey, zeros where none.
        is_fibre: the pattern is strong enough to be a fibre bundle's.
        shading: (h, w) float32, the lamp's fall-off to the rim, 1 on the mean.
    """

    checks: tuple[FrameCheck, ...]
    size_px: tuple[int, int]
    scale: float
    mask: ArrayBool
    pattern: ArrayF32
    is_fibre: bool
    shading: ArrayF32 | None = None


def survey_frames(
    source: FrameSource,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
) -> Survey:
    """Decode all frames once; measure each; estimate the mask, overlays and the fixed pattern.

    Raises:
        MosaicError: no frame at all, or none usable.
        ShapeError: the given mask is not of the frames' size.
    """
    size_px: tuple[int, int] | None = None
    greys: list[tuple[int, ImageU8]] = []
    bare: list[SourceFrame] = []
    measures: list[FrameMeasure] = []
    unfit: list[tuple[str, str]] = []
    wanted = set(np.linspace(0, source.count - 1, config.sample_frames).astype(int).tolist())
    for done, frame in enumerate(source.frames()):
        progress(done, source.count, "survey")
        if frame.rgb is not None and size_px is None:
            size_px = (frame.rgb.shape[1], frame.rgb.shape[0])
        bare.append(SourceFrame(frame.index, frame.pts, None, frame.time_s))
        unfit.append(_unfit(frame, size_px))
        if unfit[-1][0] or size_px is None or frame.rgb is None:
            measures.append(FrameMeasure())
            continue
        if done in wanted:
            greys.append((done, work_grey(frame.rgb, work_scale(size_px, config))))
        measures.append(measure_frame(frame.rgb))
    if size_px is None:
        raise MosaicError(f"survey: none of {len(bare)} frames could be read")
    found = verdicts(measures, unfit, config)
    # what veils the scene would pass for the lens
    clear = [grey for done, grey in greys if not found[done][0]] or [grey for _, grey in greys]
    pattern, is_fibre = _fixed_pattern(clear)
    inside = _mask(clear, mask, size_px)
    if not is_fibre:
        inside = inside & ~_overlay(clear, inside)
    return Survey(
        checks=tuple(map(_check, bare, measures, found)),
        size_px=size_px,
        scale=work_scale(size_px, config),
        mask=inside,
        pattern=pattern,
        is_fibre=is_fibre,
        shading=_shading(clear, inside),
    )


def _check(frame: SourceFrame, measure: FrameMeasure, verdict: tuple[str, str]) -> FrameCheck:
    code, reason = verdict
    return FrameCheck(
        frame.index, frame.pts, measure.focus, reason, code, measure.brightness, frame.time_s
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


def _unfit(frame: SourceFrame, size_px: tuple[int, int] | None) -> tuple[str, str]:
    if frame.rgb is None:
        return "unreadable", "the frame could not be decoded"
    size = (frame.rgb.shape[1], frame.rgb.shape[0])
    if size_px is not None and size != size_px:
        return "size", f"size {size[0]} x {size[1]} differs from {size_px[0]} x {size_px[1]} px"
    return "", ""


def _overlay(greys: list[ImageU8], inside: ArrayBool) -> ArrayBool:
    """(h, w) bool: burnt-in text, logos, dead px, black bars: still while the scene moves."""
    if len(greys) < MIN_PATTERN_FRAMES:
        return np.zeros(inside.shape, np.bool_)
    change = (
        np.stack([cv2.GaussianBlur(g, (3, 3), 0) for g in greys]).astype(np.float32).std(axis=0)
    )
    usual = float(np.median(change[inside])) if inside.any() else 0.0
    if usual < LIVELY:
        return np.zeros(inside.shape, np.bool_)
    still = (change < min(STILL_SHARE * usual, STILL_MAX)) & inside
    if still[inside].mean() > 0.4:
        return np.zeros(inside.shape, np.bool_)
    size = 2 * OVERLAY_GROW_PX + 1
    grown = cv2.dilate(still.astype(np.uint8), np.ones((size, size), np.uint8))
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
    known = np.isfinite(middle) & (middle > 4)
    at = (np.arange(20) + 0.5) / 20
    if known.sum() < 8:
        return flat
    basis = np.stack([np.ones(20), at**2, at**4], axis=1)
    terms = np.linalg.lstsq(basis[known], middle[known], rcond=None)[0]
    fitted = terms[0] + terms[1] * radius**2 + terms[2] * radius**4
    share = fitted / max(float(fitted[inside].mean()), 1.0)
    return np.clip(share, *SHADING_RANGE).astype(np.float32)


def _fixed_pattern(greys: list[ImageU8]) -> tuple[ArrayF32, bool]:
    """Temporal median without its coarse shading: what stands still while the scene moves.

    A fibre bundle is told by its grain, which is the same in both halves of the video, and by a
    scene that moves under it: of a video that stands still the median is the scene. What is taken
    off then is everything that stands still, for the coarser part of it would hold a direct
    alignment back.
    """
    shape = greys[0].shape if greys else (1, 1)
    nothing = np.zeros(shape, np.float32)
    if len(greys) < MIN_PATTERN_FRAMES:
        return nothing, False
    stack = np.stack(greys)
    still = np.median(stack, axis=0).astype(np.float32)
    size = 2 * PATTERN_RIM_PX + 1
    inside = cv2.erode((still > 30).astype(np.uint8), np.ones((size, size), np.uint8)) > 0
    if inside.sum() < 500:
        return nothing, False
    halves = [np.median(half, axis=0).astype(np.float32) for half in np.array_split(stack, 2)]
    first, second = (_grain(half)[inside] for half in halves)
    spread = 1.4826 * float(np.median(np.abs(_grain(still)[inside])))
    same = float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else 0.0
    coarse = cv2.GaussianBlur(still, (0, 0), COARSE_SIGMA)
    scene = float((coarse - cv2.GaussianBlur(still, (0, 0), SHADE_SIGMA))[inside].std())
    moved = np.median(
        [
            (cv2.GaussianBlur(g.astype(np.float32), (0, 0), COARSE_SIGMA) - coarse)[inside].std()
            for g in greys[:: max(1, len(greys) // 9)]
        ]
    )
    if spread < PATTERN_STRENGTH or same < PATTERN_SAME or moved < MOVING_SHARE * scene:
        return nothing, False
    return np.asarray(still - cv2.GaussianBlur(still, (0, 0), SHADE_SIGMA), np.float32), True


def _grain(grey: ArrayF32) -> ArrayF32:
    return np.asarray(grey - cv2.GaussianBlur(grey, (0, 0), GRAIN_SIGMA), np.float32)


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
