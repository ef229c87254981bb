"""Opening a video container, and decoding its frames the same way everywhere.

Everything that numbers frames (the frame table, single frames, the web rendition) goes through
``decode_frames``, so that frame n is the same picture in all of them.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, NoVideoStreamError
from ml.imaging.formats.sniff import read_head, video_format
from ml.imaging.limits import MAX_FRAME_SIDE_PX, require_frame_size
from ml.imaging.videos.colours import tag_colours

_MAX_ERRORS = 1_000
"""Undecodable packets in a row after which the rest is not read."""


@dataclass(slots=True)
class DecodeReport:
    """What went wrong while decoding, counted.

    Attributes:
        shapes: width and height of frames, and the width to height of their pixels.
    """

    damaged: int = 0
    without_time: int = 0
    out_of_order: int = 0
    cut: bool = field(default=False)
    shapes: set[tuple[int, int, Fraction]] = field(default_factory=set)


@contextmanager
def open_video(path: str | Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file's best video stream (cover pictures do not count).

    Raises:
        CorruptFileError: no container can be read from the file, or its codec is unknown.
        NoVideoStreamError, TooLargeError: it holds audio or data only; its frames are too large.
    """
    # by the first bytes, not by FFmpeg's guess: no playlist may open the files it names
    name = video_format(read_head(path))
    if not name:
        raise CorruptFileError("the video cannot be opened: its first bytes are of no known format")
    try:
        container = av.open(str(path), format=name, metadata_errors="ignore", options=_file_only())
    except MemoryError:
        raise
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.EACCES):
            raise
        raise CorruptFileError(
            "the video cannot be opened: its index is missing, truncated or damaged (was the "
            "recording or the upload interrupted?)"
        ) from error
    with container:
        yield container, _video_stream(container)


def _file_only() -> dict[str, str]:
    return {"protocol_whitelist": "file", "enable_drefs": "0", "use_absolute_path": "0"}


def _video_stream(container: InputContainer) -> VideoStream:
    pictured = av.stream.Disposition.attached_pic
    streams = [s for s in container.streams.video if not s.disposition & pictured]
    if not streams:
        kinds = sorted({str(stream.type) for stream in container.streams}) or ["no"]
        raise NoVideoStreamError(
            f"the file holds no video stream, only {', '.join(kinds)} streams; "
            "upload a file with moving pictures"
        )
    streams = [stream for stream in streams if stream.codec_context is not None]
    if not streams:
        raise CorruptFileError(
            "the video cannot be decoded: its codec is unknown, or its header is damaged"
        )
    best = max(streams, key=lambda s: (s.codec_context.width or 0) * (s.codec_context.height or 0))
    require_frame_size(best.codec_context.width or 0, best.codec_context.height or 0)
    # the stream may grow beyond what it announced: the decoder itself refuses such frames
    best.codec_context.options = {"max_pixels": str(MAX_FRAME_SIDE_PX**2)}
    best.thread_type = "AUTO"
    best.codec_context.thread_count = 2
    return best


def time_base_of(stream: VideoStream) -> Fraction:
    """Seconds per PTS unit."""
    return stream.time_base or Fraction(1, 90_000)


def seek_back(container: InputContainer, stream: VideoStream, pts: int) -> bool:
    """Go to a key frame at or before a time stamp; False if a damaged index leads nowhere."""
    try:
        container.seek(pts, stream=stream, backward=True)
    except av.error.FFmpegError:
        return False
    return True


def decode_frames(
    container: InputContainer, stream: VideoStream, report: DecodeReport | None = None
) -> Iterator[tuple[int, VideoFrame]]:
    """Yield (pts, frame) from the container's position on, in presentation order.

    Damaged packets are skipped and counted; frames without a time stamp, or not later than the one
    before, cannot be addressed and are left out and counted. Frames have their colours tagged.
    """
    report = report or DecodeReport()
    codec = stream.codec_context.codec.canonical_name
    last: int | None = None
    for frame in _decoded(container, stream, report):
        pts = frame.pts if frame.pts is not None else frame.dts
        if pts is None:
            report.without_time += 1
        elif last is not None and pts <= last:
            report.out_of_order += 1
        else:
            last = pts
            tag_colours(frame, codec)
            aspect = stream.codec_context.sample_aspect_ratio or Fraction(1)
            report.shapes.add((frame.width, frame.height, aspect))
            yield pts, frame


def _decoded(
    container: InputContainer, stream: VideoStream, report: DecodeReport
) -> Iterator[VideoFrame]:
    failures = 0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
        except StopIteration:
            return
        except MemoryError:
            raise
        except av.error.FFmpegError:
            report.cut = True
            yield from _flushed(stream, report)
            return
        if packet.is_corrupt:
            report.cut = True
        try:
            frames = packet.decode()
        except av.error.EOFError:
            return
        except MemoryError:  # the process' limit, not the packet's damage
            raise
        except av.error.FFmpegError:
            report.damaged += 1
            failures += 1
            if failures > _MAX_ERRORS:
                report.cut = True
                return
            continue
        failures = 0
        for frame in frames:
            if isinstance(frame, VideoFrame):
                report.damaged += int(frame.is_corrupt)
                yield frame


def _flushed(stream: VideoStream, report: DecodeReport) -> Iterator[VideoFrame]:
    try:
        yield from stream.codec_context.decode(None)
    except av.error.FFmpegError:
        report.damaged += 1
