"""Videos: their properties, time stamps of all frames, frames by time stamp.

A frame is named by its time stamp (PTS) in the frame table, never by a container's count. The
table also says which packet of the file holds the frame. ``probe_video`` reads it from the packets
without decoding where they can be trusted, which it checks on the file's first seconds and its last
group of pictures; otherwise it decodes everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, FrameNotFoundError
from ml.imaging.videos.colours import are_shown_alike, dynamic_range_name
from ml.imaging.videos.containers import decode_frames, open_video
from ml.imaging.videos.display import display_geometry, frame_rgb
from ml.imaging.videos.frame_access import frames_from
from ml.imaging.videos.frame_table import describe, frame_table
from ml.types import DisplayGeometry, FrameTable, ImageU8, Progress, VideoInfo, no_progress

_POSTER_AT = (0.1, 0.3, 0.5, 0.7)  # shares of the video; its end is often outside the body


def probe_video(path: str | Path, *, progress: Progress = no_progress) -> VideoInfo:
    """Inspect a video: properties, and the time stamp of every frame that decodes.

    Frames of a truncated file that decode are listed, with a warning in ``warnings``.

    Raises:
        NoVideoStreamError: audio or data only.
        CorruptFileError: not a readable container, or not one frame decodes.
        TooLargeError: frames larger than the limits.
    """
    frames = frame_table(path, progress)
    with open_video(path) as (container, stream):
        first = next(decode_frames(container, stream), None)
        if first is None:
            raise CorruptFileError("no frame of the video can be decoded")
        geometry, more = display_geometry(stream, first[1])
        info = describe(container, stream, frames, geometry, path)
        is_playable = info.browser_playable and _is_shown_alike(stream, geometry)
    name = dynamic_range_name(first[1])
    if name:
        more = (
            f"the video has a high dynamic range ({name}); its brightest parts are compressed to "
            "the range of an ordinary screen",
            *more,
        )
    return replace(info, browser_playable=is_playable, warnings=(*info.warnings, *more))


def _is_shown_alike(stream: VideoStream, geometry: DisplayGeometry) -> bool:
    """Return whether browsers show the file itself as its frames are shown here.

    All browsers turn a video, not all mirror it. The viewer stretches what is played to the canvas.
    """
    is_taller = geometry.aspect_width < geometry.aspect_height
    colours_agree = are_shown_alike(stream.codec_context, is_taller=is_taller)
    return colours_agree and not geometry.is_mirrored


def read_frame(path: str | Path, pts: int, *, table: FrameTable | None = None) -> ImageU8:
    """Read the frame with exactly that time stamp.

    Args:
        table: frame table of the video; None probes the file first.
    Returns:
        (H, W, 3) uint8 RGB, in display pixels.
    Raises:
        FrameNotFoundError: no frame has that time stamp, or the one that has it does not decode.
    """
    table = probe_video(path).frames if table is None else table
    if table.index_of(pts) is not None:
        for _, _, rgb in iter_frames(path, start_pts=pts, stop_pts=pts, table=table):
            return rgb
    at = int(np.searchsorted(table.pts, pts))
    nearest = f"the last before it has {int(table.pts[at - 1])}" if at else "none before it"
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

    Index and time stamp are those of the table; rgb is (H, W, 3) uint8, in display pixels.

    Args:
        start_pts, stop_pts: first and last time stamp, both inclusive.
        table: frame table of the video; None probes the file first.
    """
    table = probe_video(path).frames if table is None else table
    first = 0 if start_pts is None else int(np.searchsorted(table.pts, start_pts))
    stop = len(table)
    if stop_pts is not None:
        stop = int(np.searchsorted(table.pts, stop_pts, side="right"))
    if first >= stop:
        return
    with frames_from(path, table, first) as (geometry, frames):
        for index, frame in frames:
            if index >= stop:
                return
            if index % step == 0:
                yield index, int(table.pts[index]), frame_rgb(frame, geometry)
            if index == stop - 1:
                return


def poster_frame(path: str | Path, info: VideoInfo) -> ImageU8:
    """Choose the frame with the largest spread of brightness among four, so no black lead-in."""
    count = len(info.frames)
    chosen = sorted({min(int(count * share), count - 1) for share in _POSTER_AT})
    candidates = [
        read_frame(path, int(info.frames.pts[index]), table=info.frames) for index in chosen
    ]
    return max(candidates, key=lambda rgb: float(np.std(rgb[::4, ::4])))
