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
from ml.imaging.videos.colours import are_shown_alike, dynamic_range_name
from ml.imaging.videos.containers import decode_frames, open_video, seek_back, time_base_of
from ml.imaging.videos.display import display_geometry, frame_rgb, geometry_of_file
from ml.imaging.videos.frametable import describe, frame_table
from ml.types import DisplayGeometry, FrameTable, ImageU8, Progress, VideoInfo, no_progress

_STEP_BACK_S = 1.0  # a group of pictures is about as long
_MAX_STEPS = 600  # with growing steps, back over any recording
_POSTER_AT = (0.1, 0.3, 0.5, 0.7)  # shares of the video; its end is often outside the body


def probe_video(path: str | Path, *, progress: Progress = no_progress) -> VideoInfo:
    """Say what a video is, with the time stamp of every frame that decodes.

    A file that was cut keeps what decodes and says so in ``warnings``.

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
        geometry, more = display_geometry(stream, first[1])
        info = describe(container, stream, table, geometry, path)
        is_playable = info.browser_playable and _is_shown_alike(stream, geometry)
    name = dynamic_range_name(first[1])
    if name:
        warnings.append(
            f"the video has a high dynamic range ({name}); its brightest parts are compressed to "
            "the range of an ordinary screen"
        )
    return replace(info, browser_playable=is_playable, warnings=(*warnings, *more))


def _is_shown_alike(stream: VideoStream, geometry: DisplayGeometry) -> bool:
    """Whether browsers show the file itself as its frames are shown here.

    All browsers turn a video, not all mirror it. The viewer stretches what is played to the canvas.
    """
    is_taller = geometry.aspect_width < geometry.aspect_height
    colours_agree = are_shown_alike(stream.codec_context, is_taller=is_taller)
    return colours_agree and not geometry.is_mirrored


def read_frame(path: str | Path, pts: int) -> ImageU8:
    """The frame with exactly that time stamp.

    Seeks a second before it, then farther and farther back until what decodes begins at or before
    it: containers without an index land late.

    Returns:
        (H, W, 3) uint8 RGB, in display pixels.
    Raises:
        FrameNotFoundError: no frame has that time stamp.
    """
    geometry = geometry_of_file(path)
    with open_video(path) as (container, stream):
        for target in _targets(stream, pts):
            if not seek_back(container, stream, target):
                break
            began, found = _scan(decode_frames(container, stream), pts)
            if found is not None:
                return frame_rgb(found, geometry)
            if began is not None and began <= pts:
                break
    return frame_rgb(_read_from_start(path, pts), geometry)


def _scan(
    frames: Iterator[tuple[int, VideoFrame]], pts: int
) -> tuple[int | None, VideoFrame | None]:
    """First time stamp seen, and the wanted frame if the scan met it after a clean start."""
    began: int | None = None
    for at, frame in frames:
        began = at if began is None else began
        if at == pts and began < pts:
            return began, frame
        if at >= pts:
            break
    return began, None


def _read_from_start(path: str | Path, pts: int) -> VideoFrame:
    with open_video(path) as (container, stream):
        last: int | None = None
        for at, frame in decode_frames(container, stream):
            if at == pts:
                return frame
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

    The index is that of ``probe_video``'s table; rgb is (H, W, 3) uint8, in display pixels.

    Args:
        start_pts, stop_pts: first and last time stamp wanted, both inclusive.
        table: the video's own; with it what lies well before ``start_pts`` is not decoded.
    """
    with open_video(path) as (container, stream):
        first = next(decode_frames(container, stream), None)
        if first is None:
            return
        geometry, _ = display_geometry(stream, first[1])
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
            yield index, pts, frame_rgb(frame, geometry)


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
