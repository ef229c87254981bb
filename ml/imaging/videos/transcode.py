"""Rendition for browsers: h264, 4:2:0, 8 bit, index in front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import dropwhile, takewhile
from pathlib import Path

import av
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, LimitExceededError
from ml.files import replacing
from ml.imaging.picture_boxes import pixel_boxes
from ml.imaging.results import PictureBox
from ml.imaging.videos.colours import for_browsers, tag_rendition
from ml.imaging.videos.containers import open_video, time_base_of
from ml.imaging.videos.display import display_geometry, frame_rgb
from ml.imaging.videos.frame_access import FrameReader
from ml.imaging.videos.video import probe_video
from ml.types import DisplayGeometry, FrameTable, Progress, no_progress

CRF = 20  # visually near lossless; the original is kept too
_MAX_KEY_INTERVAL = 25
"""A key frame a second or so: quick to seek, the reason to make a rendition in the first place."""
_BLACK_LUMA, _NO_CHROMA = 16, 128  # of limited range
_MAX_START_S = 10.0  # players accept an offset of seconds, not of a recorder's clock


@dataclass(frozen=True, slots=True)
class Rendition:
    """A written rendition.

    Attributes:
        frames: Number of frames; frame n is frame n of the original.
        offset_pts: Subtracted from every PTS of the original (0 if it starts at 0 to 10 s). Of a
            clip the PTS of its first frame.
    """

    frames: int
    offset_pts: int


def transcode_h264(
    path: str | Path,
    out_path: str | Path,
    progress: Progress = no_progress,
    *,
    table: FrameTable | None = None,
    boxes: Sequence[PictureBox] = (),
    crf: int = CRF,
) -> Rendition:
    """Write an h264 mp4 of every frame of the table at its time, atomically.

    Time stamps are those of the table, in the original's time base; where the first is negative or
    beyond ten seconds (a recorder's clock) it is subtracted from all. Frames are upright with
    square pixels; odd sides are stretched by one pixel. Colours are tagged. Audio is left out.

    Args:
        progress: called with (frames done, of how many, "transcoding"); may raise to stop.
        table: frame table of the video; None probes the file first.
        boxes: places that are black in every frame.
        crf: quality of x264; smaller is better.
    Raises:
        NoVideoStreamError, CorruptFileError: as ``probe_video``.
        LimitExceededError: the encoder cannot take the frames.
    """
    table = probe_video(path).frames if table is None else table
    with replacing(Path(out_path)) as temporary, _refused_by_encoder():
        return _transcode(path, temporary, table, progress, boxes=boxes, crf=crf)


def write_clip(
    path: str | Path,
    out_path: str | Path,
    *,
    table: FrameTable,
    first: int,
    last: int,
    progress: Progress = no_progress,
    crf: int = CRF,
) -> Rendition:
    """Write an h264 mp4 of the frames ``first`` to ``last``, both inclusive, atomically.

    The frames are those of ``transcode_h264``; the first is at time 0 and the others keep their
    distance from it in the original's time base. The comment of the file states index and time of
    the first frame in the original.

    Args:
        progress: called with (frames done, of how many, "transcoding"); may raise to stop.
    Raises:
        NoVideoStreamError, CorruptFileError: as ``probe_video``; or a frame does not decode.
        LimitExceededError: the encoder cannot take the frames.
        ValueError: no such frames.
    """
    if not 0 <= first <= last < len(table):
        raise ValueError(f"frames {first} to {last}: the video has {len(table)}")
    with replacing(Path(out_path)) as temporary, _refused_by_encoder():
        transcoding = _transcode(
            path, temporary, table, progress, crf=crf, span=range(first, last + 1)
        )
        if transcoding.frames != last - first + 1:
            raise CorruptFileError(
                f"{transcoding.frames} of the {last - first + 1} frames of the clip can be decoded"
            )
    return transcoding


@contextmanager
def _refused_by_encoder() -> Iterator[None]:
    try:
        yield
    except (MemoryError, OSError):  # a full disk or a memory limit, not an error of the encoder
        raise
    except av.error.FFmpegError as error:
        raise LimitExceededError(
            "the video cannot be rewritten for browsers: its frames are too large for the "
            "encoder's memory, or their times are damaged"
        ) from error


def _transcode(
    path: str | Path,
    out_path: Path,
    table: FrameTable,
    progress: Progress,
    *,
    boxes: Sequence[PictureBox] = (),
    crf: int,
    span: range | None = None,
) -> Rendition:
    """Transcode all frames, or those of a clip, which begins at time 0."""
    with _frames(path, table, span) as (stream, frames):
        base = time_base_of(stream)
        options = {"movflags": "+faststart", "video_track_timescale": str(_timescale(base))}
        with av.open(str(out_path), "w", format="mp4", options=options) as target:
            out: VideoStream | None = None
            count = offset = 0
            geometry: DisplayGeometry | None = None
            for index, frame in frames:
                pts = int(table.pts[index])
                if out is None or geometry is None:
                    geometry, _ = display_geometry(stream, frame)
                    is_kept = span is None and 0 <= pts * base <= _MAX_START_S
                    offset = 0 if is_kept else pts
                    if span is not None:
                        target.metadata["comment"] = _origin(index, pts * base)
                    out = _add_stream(target, stream, _even_size(geometry), base, crf)
                picture = _prepare(frame, geometry)
                if boxes:
                    picture = _black_out(picture, boxes)
                picture.pts, picture.time_base = pts - offset, base
                target.mux(out.encode(picture))
                count += 1
                progress(count, len(table if span is None else span), "transcoding")
            if out is None:
                raise CorruptFileError("no frame of the video can be decoded")
            target.mux(out.encode(None))
    return Rendition(count, offset)


@contextmanager
def _frames(
    path: str | Path, table: FrameTable, span: range | None
) -> Iterator[tuple[VideoStream, Iterator[tuple[int, VideoFrame]]]]:
    """Open a video: its stream, and (index, frame) of all frames or of those of the span."""
    if span is not None and span.start:
        with open_video(path) as (source, stream):
            frames = FrameReader(source, stream, table).from_index(span.start)
            if frames is not None:
                yield stream, takewhile(lambda at: at[0] < span.stop, frames)
                return
    with open_video(path) as (source, stream):
        frames = FrameReader(source, stream, table).from_start()
        if span is not None:
            before_end = takewhile(lambda at: at[0] < span.stop, frames)
            frames = dropwhile(lambda at: at[0] < span.start, before_end)
        yield stream, frames


def _add_stream(
    target: OutputContainer, source: VideoStream, size: tuple[int, int], base: Fraction, crf: int
) -> VideoStream:
    rate = source.average_rate or Fraction(25)
    if not 1 <= rate <= 240:
        rate = Fraction(25)
    # no B-frames: decoding and presentation order agree, and so do all players on the first frame
    options = {"crf": str(crf), "preset": "veryfast", "bf": "0", "profile": "high"}
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


def _prepare(frame: VideoFrame, geometry: DisplayGeometry) -> VideoFrame:
    """Upright, even-sided, 4:2:0."""
    if geometry.is_mirrored or geometry.quarter_turns:
        frame = VideoFrame.from_ndarray(frame_rgb(frame, geometry), format="rgb24")
    return for_browsers(frame, _even_size(geometry))


def _black_out(frame: VideoFrame, boxes: Sequence[PictureBox]) -> VideoFrame:
    """Copy of a 4:2:0 frame with whole macroblocks of the boxes black."""
    pixels = frame.to_ndarray()  # (H * 3 / 2, W): luma, then both chroma planes at half size
    width, height = frame.width, frame.height
    luma, chroma = pixels[:height], pixels[height:].reshape(2, height // 2, width // 2)
    for left, top, right, bottom in pixel_boxes(boxes, (width, height)):
        luma[top:bottom, left:right] = _BLACK_LUMA
        half = slice(top // 2, -(-bottom // 2)), slice(left // 2, -(-right // 2))
        chroma[:, *half] = _NO_CHROMA
    black = VideoFrame.from_ndarray(pixels, format="yuv420p")
    black.colorspace, black.color_range = frame.colorspace, frame.color_range
    return black


def _origin(index: int, time_s: Fraction) -> str:
    """Place of a clip in its original."""
    return f"First frame: index {index} (from 0) of the original video, at {float(time_s):.6f} s"


def _timescale(base: Fraction) -> int:
    """Ticks per second that hold every PTS of the original exactly."""
    return base.denominator
