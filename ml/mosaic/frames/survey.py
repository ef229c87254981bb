"""Stage 1, survey: usable frames, the scope's field of view, and static parts of the image."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import MosaicError
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.field_of_view import view_side_px
from ml.mosaic.frames.fixed_pattern import (
    FixedPattern,
    PatternFrames,
    PatternSampler,
    estimate_fixed_pattern,
)
from ml.mosaic.frames.quality import FrameMeasure, measure_frame, verdicts
from ml.mosaic.frames.sources import FrameSource, SourceFrame
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, ImageU8, Progress

MAX_VIEW_ZOOM = 2.0
"""Largest zoom of the working image of a small view: px beyond the view are computed too."""


@dataclass(frozen=True, slots=True)
class FrameCheck:
    """One frame's verdict; ``reason`` is "" where usable."""

    index: int
    pts: int
    sharpness: float
    reason: str
    reason_code: str = ""
    brightness: float = 0.0
    time_s: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class FrameMeasures:
    """Measurements of the frames so far: enough to judge them and to continue with more.

    Attributes:
        index, pts: (N,) int64.
        time_s: (N,) float64, NaN for a source without a clock.
        names: of the frames' files, "" for a source that is no folder.
        values: (N, 7) float64, the fields of ``FrameMeasure``.
        pattern_frames: those from which the fixed pattern is learned.
        unfit: position -> (reason code, reason) of the frames that could not be measured.
        size_px: (width, height) of the first frame that could be read.
    """

    index: ArrayI64
    pts: ArrayI64
    time_s: ArrayF64
    values: ArrayF64
    pattern_frames: PatternFrames
    unfit: dict[int, tuple[str, str]]
    size_px: tuple[int, int] | None
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pts)


@dataclass(frozen=True, slots=True)
class Survey:
    """Result of one pass over the source.

    Attributes:
        checks: one per frame, in order.
        size_px: (width, height) of the frames.
        scale: working px per frame px.
        mask: (h, w) bool at working size, True inside the scope and off burnt-in text, logos and
            dead px.
        pattern: (h, w) float32, fixed pattern to subtract from grey, zeros where none.
        is_fibre: the pattern is strong enough to be a fibre bundle's.
        shading: (h, w) float32, the lamp's fall-off to the rim, 1 on average.
    """

    checks: tuple[FrameCheck, ...]
    size_px: tuple[int, int]
    scale: float
    mask: ArrayBool
    pattern: ArrayF32
    is_fibre: bool
    shading: ArrayF32 | None = None

    def usable(self) -> list[int]:
        """Positions of the usable frames."""
        return [i for i, check in enumerate(self.checks) if not check.reason]

    def fixed_pattern_digest(self) -> str:
        """SHA-256 of the fixed pattern, which is all that registration takes from other frames."""
        digest = hashlib.sha256(repr((self.size_px, self.scale, self.is_fibre)).encode())
        for plane in (self.mask, self.pattern, self.shading):
            digest.update(b"" if plane is None else np.ascontiguousarray(plane).tobytes())
        return digest.hexdigest()


def measure_frames(
    source: FrameSource,
    *,
    config: MosaicConfig,
    progress: Progress,
    earlier: FrameMeasures | None = None,
) -> FrameMeasures:
    """Decode the frames once and measure each.

    Args:
        earlier: Measures of an earlier, shorter state of the source, which are not taken again. If
            the source does not begin with these frames (the first and last are compared), all are.
    Raises:
        MosaicError: no frame at all could be read.
    """
    measuring = _Measuring(earlier if _is_continuation(source, earlier) else None, config)
    for frame in source.frames(len(measuring)):
        progress(len(measuring), source.count, "survey")
        measuring.add(frame)
    if measuring.size_px is None:
        raise MosaicError(f"survey: none of {len(measuring)} frames could be read")
    return measuring.measures()


def survey_of(
    measures: FrameMeasures, *, config: MosaicConfig, mask: npt.NDArray[Any] | None = None
) -> Survey:
    """Judge the frames, and learn the fixed pattern.

    Raises:
        MosaicError: no frame was read.
        ShapeError: the given mask is not of the frames' size.
    """
    if measures.size_px is None:
        raise MosaicError("survey: no frame was read")
    unfit = [measures.unfit.get(i, ("", "")) for i in range(len(measures))]
    frame_verdicts = verdicts(
        [FrameMeasure(*row) for row in measures.values.tolist()], unfit, config
    )
    sample = measures.pattern_frames
    samples = list(zip(sample.positions, sample.greys, strict=True))
    # haze would be taken for a fixed pattern
    clear = [grey for i, grey in samples if not frame_verdicts[i][0]] or [
        grey for _, grey in samples
    ]
    chosen = np.unique(np.linspace(0, len(clear) - 1, config.sample_frames).astype(int))
    fixed = estimate_fixed_pattern([clear[i] for i in chosen], mask, measures.size_px)
    scale = work_scale(measures.size_px, config)
    zoom = min(MAX_VIEW_ZOOM, 1 / scale, _view_zoom(fixed, config))
    if zoom > 1.0:
        scale *= zoom
        fixed = fixed.resized(work_size(measures.size_px, scale))
    return Survey(
        checks=tuple(_check(measures, i, verdict) for i, verdict in enumerate(frame_verdicts)),
        size_px=measures.size_px,
        scale=scale,
        mask=fixed.mask,
        pattern=fixed.pattern,
        is_fibre=fixed.is_fibre,
        shading=fixed.shading,
    )


def _view_zoom(fixed: FixedPattern, config: MosaicConfig) -> float:
    """Zoom by which the view, not the frame around it, reaches the working size.

    The pattern of a fibre bundle is known at the size at which it was learned, and at no other.
    """
    if fixed.is_fibre or not fixed.mask.any():
        return 1.0
    return config.work_px / view_side_px(fixed.mask)


class _Measuring:
    """Measurements so far, growing."""

    def __init__(self, earlier: FrameMeasures | None, config: MosaicConfig) -> None:
        self._known, self._config = earlier, config
        self._frames: list[tuple[int, int, float, str]] = []
        self._values: list[list[float]] = []
        self._unfit = dict(earlier.unfit) if earlier else {}
        self.size_px = earlier.size_px if earlier else None
        sample = earlier.pattern_frames if earlier else PatternFrames()
        self._sampler = PatternSampler(
            sample, count=config.sample_frames, max_moved=config.fixed_pattern_frames
        )

    def __len__(self) -> int:
        return len(self._frames) + (len(self._known) if self._known else 0)

    def add(self, frame: SourceFrame) -> None:
        position, measure = len(self), FrameMeasure()
        if frame.rgb is not None and self.size_px is None:
            self.size_px = (frame.rgb.shape[1], frame.rgb.shape[0])
        unfit = _unfit(frame, self.size_px)
        if unfit[0]:
            self._unfit[position] = unfit
        elif frame.rgb is not None and self.size_px is not None:
            measure = measure_frame(frame.rgb)
            grey = work_grey(frame.rgb, work_scale(self.size_px, self._config))
            is_lit = measure.brightness >= self._config.min_brightness
            self._sampler.add(position, grey, is_lit=is_lit)
        time_s = np.nan if frame.time_s is None else frame.time_s
        self._frames.append((frame.index, frame.pts, time_s, frame.name))
        self._values.append(_row(measure))

    def measures(self) -> FrameMeasures:
        width = len(FrameMeasure.__slots__)
        new = FrameMeasures(
            index=np.array([frame[0] for frame in self._frames], np.int64),
            pts=np.array([frame[1] for frame in self._frames], np.int64),
            time_s=np.array([frame[2] for frame in self._frames], np.float64),
            values=np.array(self._values, np.float64).reshape(-1, width),
            pattern_frames=self._sampler.frames(),
            unfit=self._unfit,
            size_px=self.size_px,
            names=tuple(frame[3] for frame in self._frames),
        )
        return new if self._known is None else _concatenate(self._known, new)


def _concatenate(earlier: FrameMeasures, new: FrameMeasures) -> FrameMeasures:
    return replace(
        new,
        index=np.concatenate([earlier.index, new.index]),
        pts=np.concatenate([earlier.pts, new.pts]),
        time_s=np.concatenate([earlier.time_s, new.time_s]),
        values=np.concatenate([earlier.values, new.values]),
        names=earlier.names + new.names,
    )


def _is_continuation(source: FrameSource, earlier: FrameMeasures | None) -> bool:
    """Return whether a source begins with the known frames, by the first and the last of them."""
    if earlier is None or not 0 < len(earlier) <= source.count:
        return False
    for position in {0, len(earlier) - 1}:
        frame = next(iter(source.frames(position)), None)
        if frame is None or frame.pts != earlier.pts[position]:
            return False
        if frame.name != earlier.names[position]:
            return False
        is_fit = position not in earlier.unfit and frame.rgb is not None
        measure = measure_frame(frame.rgb) if is_fit and frame.rgb is not None else FrameMeasure()
        if _row(measure) != earlier.values[position].tolist():
            return False
    return True


def _row(measure: FrameMeasure) -> list[float]:
    return [float(getattr(measure, name)) for name in FrameMeasure.__slots__]


def _check(measures: FrameMeasures, i: int, verdict: tuple[str, str]) -> FrameCheck:
    code, reason = verdict
    measure, time_s = FrameMeasure(*measures.values[i].tolist()), float(measures.time_s[i])
    return FrameCheck(
        index=int(measures.index[i]),
        pts=int(measures.pts[i]),
        sharpness=measure.sharpness,
        reason=reason,
        reason_code=code,
        brightness=measure.brightness,
        time_s=None if np.isnan(time_s) else time_s,
        name=measures.names[i],
    )


def usable_frames(
    source: FrameSource, survey: Survey, *, first: int = 0
) -> Iterator[tuple[int, ImageU8]]:
    """Yield (position, rgb) of each usable frame from the ``first``-th frame of the source on."""
    for position, frame in enumerate(source.frames(first), first):
        is_usable = position < len(survey.checks) and not survey.checks[position].reason
        if is_usable and frame.rgb is not None:
            yield position, frame.rgb


def work_scale(size_px: tuple[int, int], config: MosaicConfig) -> float:
    """Working px per frame px while nothing is known of the view: the longest side is work_px.

    1 for smaller frames.
    """
    return min(1.0, config.work_px / max(size_px))


def work_size(size_px: tuple[int, int], scale: float) -> tuple[int, int]:
    """(width, height) of the working image."""
    return round(size_px[0] * scale), round(size_px[1] * scale)


def work_grey(rgb: ImageU8, scale: float) -> ImageU8:
    """Grey at working size."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    if scale < 1.0:
        size = work_size((rgb.shape[1], rgb.shape[0]), scale)
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(grey, np.uint8)


def _unfit(frame: SourceFrame, size_px: tuple[int, int] | None) -> tuple[str, str]:
    if frame.rgb is None:
        return "unreadable", "the frame could not be decoded"
    size = (frame.rgb.shape[1], frame.rgb.shape[0])
    if size_px is not None and size != size_px:
        return "size", f"size {size[0]} x {size[1]} differs from {size_px[0]} x {size_px[1]} px"
    return "", ""
