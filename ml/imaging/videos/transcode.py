"""The rendition a browser plays: h264, 4:2:0, 8 bit, index in front."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, LimitExceededError
from ml.files import replacing
from ml.imaging.videos.addressing import FrameReader
from ml.imaging.videos.colours import for_browsers, tag_rendition
from ml.imaging.videos.containers import open_video, time_base_of
from ml.imaging.videos.display import display_geometry, frame_rgb
from ml.imaging.videos.video import probe_video
from ml.types import DisplayGeometry, FrameTable, Progress, no_progress

CRF = 20  # visually near lossless; the original is kept beside it
_MAX_KEY_INTERVAL = 25
"""A key frame a second or so: quick to seek, the reason to make a rendition in the first place."""
_KEPT_OFFSET_S = 10.0  # players start at 0; a few seconds of lead they bear, a recorder's clock not


@dataclass(frozen=True, slots=True)
class Rendition:
    """What was written.

    Attributes:
        frames: frames written; frame n is frame n of the original.
        offset_pts: taken off every PTS of the original (0 if it starts at 0 to 10 s).
    """

    frames: int
    offset_pts: int


def transcode_h264(
    path: str | Path,
    out_path: str | Path,
    progress: Progress = no_progress,
    *,
    table: FrameTable | None = None,
) -> Rendition:
    """Write an h264 mp4 of every frame of the table at its time, whole or not at all.

    Time stamps are those of the table, in the original's time base; where the first is negative or
    beyond ten seconds (a recorder's clock) it is taken off all of them. Frames are upright with
    square pixels; odd sides are stretched by one pixel. Colours are tagged. Audio is left out.

    Args:
        progress: called with (frames done, of how many, "transcoding"); may raise to stop.
        table: the video's own; without it the file is probed first.
    Raises:
        NoVideoStreamError, CorruptFileError: as ``probe_video``.
        LimitExceededError: the encoder cannot take the frames.
    """
    table = probe_video(path).frames if table is None else table
    with replacing(Path(out_path)) as temporary:
        try:
            return _transcode(path, temporary, table, progress)
        except (MemoryError, OSError):  # a full disk, a limit: not the encoder's own refusal
            raise
        except av.error.FFmpegError as error:
            raise LimitExceededError(
                "the video cannot be rewritten for browsers: its frames are too large for the "
                "encoder's memory, or their times are damaged"
            ) from error


def _transcode(
    path: str | Path, out_path: Path, table: FrameTable, progress: Progress
) -> Rendition:
    with open_video(path) as (source, stream):
        base = time_base_of(stream)
        options = {"movflags": "+faststart", "video_track_timescale": str(_timescale(base))}
        with av.open(str(out_path), "w", format="mp4", options=options) as target:
            out: VideoStream | None = None
            count = offset = 0
            geometry: DisplayGeometry | None = None
            for index, frame in FrameReader(source, stream, table).from_start():
                pts = int(table.pts[index])
                if out is None or geometry is None:
                    geometry, _ = display_geometry(stream, frame)
                    offset = pts if pts * base > _KEPT_OFFSET_S or pts < 0 else 0
                    out = _add_stream(target, stream, _even_size(geometry), base)
                shown = _prepared(frame, geometry)
                shown.pts, shown.time_base = pts - offset, base
                target.mux(out.encode(shown))
                count += 1
                progress(count, len(table), "transcoding")
            if out is None:
                raise CorruptFileError("no frame of the video can be decoded")
            target.mux(out.encode(None))
    return Rendition(count, offset)


def _add_stream(
    target: OutputContainer, source: VideoStream, size: tuple[int, int], base: Fraction
) -> VideoStream:
    rate = source.average_rate or Fraction(25)
    if not 1 <= rate <= 240:
        rate = Fraction(25)
    # no B-frames: decoding and presentation order agree, and so do all players on the first frame
    options = {"crf": str(CRF), "preset": "veryfast", "bf": "0", "profile": "high"}
    out = target.add_stream("libx264", rate=rate, options=options)
    out.width, out.height, out.pix_fmt = *size, "yuv420p"
    tag_rendition(out.codec_context)
    out.codec_context.time_base = base
    out.codec_context.gop_size = _MAX_KEY_INTERVAL
    out.codec_context.thread_count = 2
    out.time_base = base
    return out


def _even_size(geometry: DisplayGeometry) -> tuple[int, int]:
    width, height = geometry.size
    return width + width % 2, height + height % 2


def _prepared(frame: VideoFrame, geometry: DisplayGeometry) -> VideoFrame:
    """Upright, even-sided, 4:2:0."""
    if geometry.is_mirrored or geometry.quarter_turns:
        frame = VideoFrame.from_ndarray(frame_rgb(frame, geometry), format="rgb24")
    return for_browsers(frame, _even_size(geometry))


def _timescale(base: Fraction) -> int:
    """Ticks per second that hold every PTS of the original exactly."""
    return base.denominator
