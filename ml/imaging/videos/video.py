"""Videos: what they are, every frame's time stamp, frames by time stamp.

A frame is named by its presentation time stamp (PTS), never by a container's count. ``probe_video``
reads the time stamps from the packets without decoding where that can be trusted, which it checks
on the file's first seconds and its last group of pictures; otherwise it decodes everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, FrameNotFoundError
from ml.imaging.videos.containers import (
    decode_frames,
    frame_rgb,
    open_video,
    quarter_turns,
    seek_back,
    time_base_of,
)
from ml.imaging.videos.frametable import describe, frame_table
from ml.types import FrameTable, ImageU8, Progress, VideoInfo, no_progress

_STEP_BACK_S = 1.0  # a group of pictures is about as long
_MAX_STEPS = 600  # with growing steps, back over any recording
_POSTER_AT = (0.1, 0.3, 0.5, 0.7)  # shares of the video; its end is often outside the body


def probe_video(path: str | Path, *, progress: Progress = no_progress) -> VideoInfo:
    """Say what a video is, with the time stamp of every frame that decodes.

    A file that was cut keeps what decodes and says so in ``warnings``. Sizes are upright.

    Raises:
        NoVideoStreamError: audio or data only.
        CorruptFileError: not a readable container, or not one frame decodes.
        TooLargeError: frames larger than the limits.
    """
    table, warnings = frame_table(path, progress)
    with open_video(path) as (container, stream):
        first = next(decode_frames(container, stream), None)
        if first is None:
            raise CorruptFileError("no frame of the video can be decoded")
        frame = first[1]
        width, height = frame.width, frame.height
        if quarter_turns(frame.rotation) % 2:
            width, height = height, width
        info = describe(container, stream, table, path)
    return replace(info, width_px=width, height_px=height, warnings=tuple(warnings))


def read_frame(path: str | Path, pts: int) -> ImageU8:
    """The frame with exactly that time stamp.

    Seeks a second before it, then farther and farther back until what decodes begins at or before
    it: containers without an index land late.

    Returns:
        (H, W, 3) uint8 RGB, upright.
    Raises:
        FrameNotFoundError: no frame has that time stamp.
    """
    with open_video(path) as (container, stream):
        for target in _targets(stream, pts):
            if not seek_back(container, stream, target):
                break
            began, found = _scan(decode_frames(container, stream), pts)
            if found is not None:
                return found
            if began is not None and began <= pts:
                break
    return _read_from_start(path, pts)


def _scan(frames: Iterator[tuple[int, VideoFrame]], pts: int) -> tuple[int | None, ImageU8 | None]:
    """First time stamp seen, and the wanted frame if the scan met it after a clean start."""
    began: int | None = None
    for at, frame in frames:
        began = at if began is None else began
        if at == pts and began < pts:
            return began, frame_rgb(frame)
        if at >= pts:
            break
    return began, None


def _read_from_start(path: str | Path, pts: int) -> ImageU8:
    with open_video(path) as (container, stream):
        last: int | None = None
        for at, frame in decode_frames(container, stream):
            if at == pts:
                return frame_rgb(frame)
            if at > pts:
                break
            last = at
    nearest = "none before it" if last is None else f"the last before it has {last}"
    raise FrameNotFoundError(f"no frame has the time stamp {pts}; {nearest}")


def iter_frames(
    path: str | Path,
    *,
    step: int = 1,
    start_pts: int | None = None,
    stop_pts: int | None = None,
    table: FrameTable | None = None,
) -> Iterator[tuple[int, int, ImageU8]]:
    """Yield (index, pts, rgb) of every ``step``-th frame, in presentation order.

    The index is that of ``probe_video``'s table; rgb is (H, W, 3) uint8, upright.

    Args:
        start_pts, stop_pts: first and last time stamp wanted, both inclusive.
        table: the video's own; with it what lies well before ``start_pts`` is not decoded.
    """
    with open_video(path) as (container, stream):
        first = next(decode_frames(container, stream), None)
    if first is None:
        return
    size = (first[1].width, first[1].height)
    start = first[0] if start_pts is None else start_pts
    frames: Iterator[tuple[int, tuple[int, VideoFrame]]]
    if table is not None and start > first[0]:
        frames = _numbered(_decoded_from(path, start), table)
    else:
        frames = enumerate(_decoded_from(path, None))
    for index, (pts, frame) in frames:
        if stop_pts is not None and pts > stop_pts:
            return
        if index % step == 0 and pts >= start:
            yield index, pts, frame_rgb(frame, size)


def _decoded_from(path: str | Path, pts: int | None) -> Iterator[tuple[int, VideoFrame]]:
    """Decode on from a clean start at or before a time stamp; None: from the beginning."""
    with open_video(path) as (container, stream):
        for target in () if pts is None else _targets(stream, pts):
            if not seek_back(container, stream, target):
                break
            frames = decode_frames(container, stream)
            first = next(frames, None)
            if pts is not None and first is not None and first[0] < pts:
                yield first
                yield from frames
                return
    with open_video(path) as (container, stream):
        yield from decode_frames(container, stream)


def _numbered(
    frames: Iterator[tuple[int, VideoFrame]], table: FrameTable
) -> Iterator[tuple[int, tuple[int, VideoFrame]]]:
    """With the index that the table gives each time stamp; what is not in it is left out."""
    for pts, frame in frames:
        index = int(np.searchsorted(table.pts, pts))
        if index < len(table) and table.pts[index] == pts:
            yield index, (pts, frame)


def _targets(stream: VideoStream, pts: int) -> Iterator[int]:
    """Where to seek for a time stamp: a second before it, then farther and farther back."""
    step = max(1, round(_STEP_BACK_S / time_base_of(stream)))
    start = stream.start_time or 0
    for steps in range(1, _MAX_STEPS):
        target = pts - step * steps * max(1, steps // 4)
        if target <= start:
            return
        yield target


def poster_frame(path: str | Path, info: VideoInfo) -> ImageU8:
    """The liveliest of four frames (largest spread of brightness): no black lead-in."""
    count = len(info.frames)
    chosen = sorted({min(int(count * share), count - 1) for share in _POSTER_AT})
    candidates = [read_frame(path, int(info.frames.pts[index])) for index in chosen]
    return max(candidates, key=lambda rgb: float(np.std(rgb[::4, ::4])))
