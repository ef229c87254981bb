"""Opening a video container, and decoding its frames the same way everywhere.

Everything that numbers frames (the frame table, single frames, the web rendition) goes through
``decode_frames``, which gives each frame with the number of its packet. A packet's number
names a picture where time stamps do not: clocks restart, wrap around, repeat, or are missing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, NoVideoStreamError
from ml.imaging.formats.sniff import read_head, video_format
from ml.imaging.limits import MAX_FRAME_SIDE_PX, require_frame_size
from ml.imaging.videos.colours import tag_colours
from ml.types import SeekPoint

_BYTE_SEEK_FORMATS = ("mpeg", "mpegts", "mpegvideo")
"""Containers without an index, whose time stamps may repeat; decoding can begin at any packet."""
_MAX_ERRORS = 1_000
"""Undecodable packets in a row after which reading stops."""


@dataclass(slots=True)
class DecodeReport:
    """Damage met while decoding, and the shapes of frames.

    Attributes:
        shapes: width and height of frames, and the width to height of their pixels.
    """

    damaged: int = 0
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
        container = av.open(str(path), format=name, metadata_errors="ignore", options=_options())
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


def _options() -> dict[str, str]:
    """Options: open no other file, and return stored time stamps, even if they wrap around."""
    return {
        "protocol_whitelist": "file",
        "enable_drefs": "0",
        "use_absolute_path": "0",
        "correct_ts_overflow": "0",
    }


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


def seek_to(container: InputContainer, stream: VideoStream, point: SeekPoint) -> bool:
    """Seek to a packet, or to one before it; False if a damaged index prevents it."""
    is_by_bytes = container.format.name in _BYTE_SEEK_FORMATS
    try:
        container.seek(
            point.position if is_by_bytes else point.time,
            stream=stream,
            backward=True,
            unsupported_byte_offset=is_by_bytes,
        )
    except (av.error.FFmpegError, OverflowError):
        return False
    return True


def decode_frames(
    container: InputContainer,
    stream: VideoStream,
    report: DecodeReport | None = None,
    *,
    packet_numbers: Mapping[tuple[int, int], int] | None = None,
) -> Iterator[tuple[int, VideoFrame]]:
    """Decode frames in presentation order, with tagged colours.

    Yields (number of the frame's packet, frame).

    Args:
        report: damaged packets are counted in it.
        packet_numbers: after a seek, numbers of packets by (byte position, size); packets before
            the first of them are not decoded. None: the container is at its beginning.
    """
    report = report or DecodeReport()
    failures = 0
    for number, packet in _numbered_packets(container, stream, report, packet_numbers):
        # the decoder copies a packet's time stamp to its frame: here it is the packet's number
        packet.pts, packet.dts = number, None
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
        yield from _pictures(frames, number, stream, report)
    yield from _pictures(_flush(stream, report), -1, stream, report)


def _numbered_packets(
    container: InputContainer,
    stream: VideoStream,
    report: DecodeReport,
    packet_numbers: Mapping[tuple[int, int], int] | None,
) -> Iterator[tuple[int, Packet[VideoStream]]]:
    number = 0 if packet_numbers is None else None
    for packet in demux_packets(container, stream, report):
        if number is None and packet_numbers is not None:
            number = packet_numbers.get((-1 if packet.pos is None else packet.pos, packet.size))
        if number is not None:
            yield number, packet
            number += 1


def demux_packets(
    container: InputContainer, stream: VideoStream, report: DecodeReport
) -> Iterator[Packet[VideoStream]]:
    """Yield the stream's packets that hold data, until the file ends or cannot be read on."""
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
            return
        report.cut = packet.is_corrupt  # the last packet is truncated
        if packet.size:
            yield packet


def _pictures(
    frames: Iterable[object], number: int, stream: VideoStream, report: DecodeReport
) -> Iterator[tuple[int, VideoFrame]]:
    for frame in frames:
        if isinstance(frame, VideoFrame):
            report.damaged += int(frame.is_corrupt)
            tag_colours(frame, stream.codec_context.codec.canonical_name)
            aspect = stream.codec_context.sample_aspect_ratio or Fraction(1)
            report.shapes.add((frame.width, frame.height, aspect))
            yield (number if frame.pts is None else frame.pts), frame


def _flush(stream: VideoStream, report: DecodeReport) -> Iterator[VideoFrame]:
    try:
        yield from stream.codec_context.decode(None)
    except av.error.FFmpegError:
        report.damaged += 1
