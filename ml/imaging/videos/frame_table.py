"""The frame table: from packets where they can be trusted, else from decoding everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.limits import MAX_FRAMES
from ml.imaging.videos.containers import (
    DecodeReport,
    decode_frames,
    demux_packets,
    open_video,
    time_base_of,
)
from ml.imaging.videos.frame_access import FrameReader
from ml.imaging.videos.presentation_times import (
    MAX_START,
    ClockRules,
    presentation_times,
    usual_step,
)
from ml.imaging.videos.truncation import is_cut
from ml.types import (
    ArrayI64,
    DisplayGeometry,
    FrameTable,
    Progress,
    VideoInfo,
    no_progress,
)

_TRUSTED_CONTAINERS = ("mov", "matroska")
_TRUSTED_CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg", "prores")
"""Codecs that show one frame a packet. VP8 hides some packets, MPEG-1/2 may split pictures."""
_HEAD_FRAMES = 60  # two seconds: irregular time stamps are at the start
_BROADCAST = ("mpeg", "mpegts")
"""Containers whose clock has 33 bits and may be set while it runs (ISO/IEC 13818-1)."""
_BROADCAST_WRAP = 2**33
_BROADCAST_JUMP_S = 10  # as FFmpeg's dts_delta_threshold
_JUMP_S = 30 * 3600  # as FFmpeg's dts_error_threshold
_WITHOUT_PRESENTATION = ("avi", "mpegvideo")
"""Containers that store packets in order of decoding and no time of presentation."""


@dataclass(slots=True)
class _Packets:
    """Every packet of the stream, by its number in the file's order."""

    pts: list[int | None] = field(default_factory=list)
    dts: list[int | None] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    key: list[bool] = field(default_factory=list)
    discarded: int = 0

    def append(self, packet: Packet[VideoStream]) -> None:
        """Add the next packet."""
        self.pts.append(packet.pts)
        self.dts.append(packet.dts)
        self.position.append(-1 if packet.pos is None else packet.pos)
        self.size.append(packet.size)
        self.key.append(packet.is_keyframe)
        self.discarded += packet.is_discard

    def __len__(self) -> int:
        return len(self.pts)

    def stamps_of(self, table: FrameTable) -> list[int | None]:
        """The stored time stamps of frames."""
        return [self.pts[number] for number in table.packet.tolist()]

    def seek_points(self, numbers: ArrayI64) -> ArrayI64:
        """``FrameTable.seek_points`` of those packets that position and size tell apart."""
        places = list(zip(self.position, self.size, strict=True))
        count = Counter(places)
        rows = [
            (number, *places[number], self._time(number))
            for number in sorted(set(numbers.tolist()))
            if self.position[number] >= 0 and count[places[number]] == 1
        ]
        return np.array(rows, np.int64).reshape(-1, 4)

    def _time(self, number: int) -> int:
        pts, dts = self.pts[number], self.dts[number]
        return (dts or 0) if pts is None else pts


@dataclass(frozen=True, slots=True)
class FoundFrames:
    """A frame table, with warnings and whether players agree with it.

    Attributes:
        warnings: sentences for the user.
        is_plain: every packet of the file is one frame at its stored time, as in any player.
    """

    table: FrameTable
    warnings: list[str]
    is_plain: bool


def frame_table(path: str | Path, progress: Progress = no_progress) -> FoundFrames:
    """Every decodable frame of a video in presentation order.

    Raises:
        CorruptFileError: not one frame decodes.
        TooLargeError: more than ``MAX_FRAMES`` frames.
    """
    report = DecodeReport()
    packets = _Packets()
    with open_video(path) as (container, stream):
        base, name = time_base_of(stream), container.format.name
        for packet in demux_packets(container, stream, report):
            packets.append(packet)
            if len(packets) > MAX_FRAMES:
                raise TooLargeError(f"the video has more than {MAX_FRAMES:,} frames")
        promised = stream.frames
        is_trusted = name.startswith(_TRUSTED_CONTAINERS) and stream.codec_context.name.startswith(
            _TRUSTED_CODECS
        )
    is_complete = not (report.cut or packets.discarded) and promised in (0, len(packets))
    table = _table_of_packets(packets, base) if is_trusted and is_complete else None
    restarts = 0
    if table is None or not _is_confirmed(path, table):
        table, restarts = _decoded_table(path, packets, (name, base), report, progress)
    if not len(table):
        raise CorruptFileError("no frame of the video can be decoded")
    is_plain = is_complete and not restarts and packets.stamps_of(table) == table.pts.tolist()
    return FoundFrames(table, _warnings(path, table, report, restarts), is_plain)


def _table_of_packets(packets: _Packets, base: Fraction) -> FrameTable | None:
    """Table of one frame a packet in the order of time stamps; None if these do not ascend."""
    if not len(packets) or None in packets.pts:
        return None
    times = np.asarray(packets.pts, np.int64)
    order = np.argsort(times, kind="stable")
    if np.any(np.diff(times[order]) <= 0) or _is_odd(times[order], base):
        return None
    key = np.asarray(packets.key, np.bool_)
    points = packets.seek_points(np.flatnonzero(key))
    return FrameTable(times[order], key[order], float(base), order.astype(np.int64), points)


def _is_odd(times: ArrayI64, base: Fraction) -> bool:
    """Return whether times need ``presentation_times``."""
    jump = round(_JUMP_S / base)
    return abs(int(times[0])) > MAX_START or bool(np.any(np.diff(times) > jump))


def _is_confirmed(path: str | Path, table: FrameTable) -> bool:
    """Decode the head and the last group of pictures, and compare the packet of every frame."""
    head = min(_HEAD_FRAMES, len(table))
    report = DecodeReport()
    with open_video(path) as (container, stream):
        frames = islice(decode_frames(container, stream, report), head)
        if [packet for packet, _ in frames] != table.packet[:head].tolist() or report.damaged:
            return False
    with open_video(path) as (container, stream):
        indexes = [index for index, _ in FrameReader(container, stream, table).last_group(report)]
    return bool(indexes) and indexes == list(range(indexes[0], len(table))) and not report.damaged


def _decoded_table(
    path: str | Path,
    packets: _Packets,
    clock: tuple[str, Fraction],
    report: DecodeReport,
    progress: Progress,
) -> tuple[FrameTable, int]:
    """Return the table, and how often the clock restarts or jumps."""
    holders: list[int] = []
    key: list[bool] = []
    with open_video(path) as (container, stream):
        for number, frame in decode_frames(container, stream, report):
            if number >= len(packets):
                break
            holders.append(number)
            key.append(bool(frame.key_frame))
            if len(holders) % 50 == 0:
                progress(min(len(holders), len(packets)), len(packets), "reading frames")
    name, base = clock
    stamps = [packets.pts[number] for number in holders]
    if name in _WITHOUT_PRESENTATION or not any(stamp is not None for stamp in stamps):
        stamps = _sort_stamps([packets.dts[number] for number in holders])
    is_broadcast = name in _BROADCAST
    jump_s = _BROADCAST_JUMP_S if is_broadcast else _JUMP_S
    wrap = _BROADCAST_WRAP if is_broadcast else 0
    rules = ClockRules(wrap=wrap, jump=round(jump_s / base), step=usual_step(stamps))
    pts, restarts = presentation_times(stamps, rules)
    holds, is_key = np.asarray(holders, np.int64), np.asarray(key, np.bool_)
    points = packets.seek_points(holds[is_key])
    return FrameTable(pts, is_key, float(base), holds, points), restarts


def _sort_stamps(stamps: list[int | None]) -> list[int | None]:
    """Use times of decoding as times of presentation, in ascending order."""
    present = sorted(stamp for stamp in stamps if stamp is not None)
    return [*present] if len(present) == len(stamps) else [None] * len(stamps)


def _warnings(
    path: str | Path, table: FrameTable, report: DecodeReport, restarts: int
) -> list[str]:
    sentences: list[str] = []
    count = f"{len(table):,} frames ({_duration_s(table):.1f} s) can be decoded"
    if is_cut(path):
        sentences.append(f"the file is truncated: {count}")
    elif report.cut:
        sentences.append(f"the file is damaged or cut: {count}")
    if report.damaged:
        sentences.append(f"{report.damaged:,} frames or packets are damaged")
    if len(report.shapes) > 1:
        sentences.append(
            "the size of its frames or the shape of their pixels changes on the way; all are shown "
            "at the size of the first"
        )
    if restarts:
        times = "once" if restarts == 1 else f"{restarts:,} times"
        sentences.append(
            f"the recorder's clock starts again or jumps {times}: the parts are shown one after "
            "the other, with times that go on"
        )
    return sentences


def _duration_s(table: FrameTable) -> float:
    """Duration to the end of the last frame, which is taken to be as long as the median frame."""
    if len(table) < 2:
        return 0.0
    usual = float(np.median(np.diff(table.pts)))
    return (float(table.pts[-1] - table.pts[0]) + usual) * table.time_base_s


def describe(
    container: InputContainer,
    stream: VideoStream,
    frames: FoundFrames,
    geometry: DisplayGeometry,
    path: str | Path,
) -> VideoInfo:
    """Codec, container, duration and rate."""
    table = frames.table
    duration_s = _duration_s(table)
    with Path(path).open("rb") as file:
        head = file.read(256)
    return VideoInfo(
        geometry=geometry,
        codec=stream.codec_context.name,
        container=_container_name(container.format.name, head),
        frames=table,
        duration_s=duration_s,
        fps=len(table) / duration_s if duration_s else 0.0,
        browser_playable=frames.is_plain
        and _is_only_one(container, stream)
        and _is_playable(container, stream, head),
        warnings=tuple(frames.warnings),
    )


def _container_name(name: str, head: bytes) -> str:
    if name.startswith("mov"):
        return "mov" if head[8:12] == b"qt  " else "mp4"
    if name.startswith("matroska"):
        return "webm" if b"webm" in head else "mkv"
    return name.partition(",")[0]


def _is_only_one(container: InputContainer, stream: VideoStream) -> bool:
    """Return whether this is the only video stream that a browser can choose."""
    pictured = av.stream.Disposition.attached_pic
    films = [other for other in container.streams.video if not other.disposition & pictured]
    return [other.index for other in films] == [stream.index]


def _is_playable(container: InputContainer, stream: VideoStream, head: bytes) -> bool:
    """Return whether all browsers play it: 8-bit 4:2:0 h264 in mp4, VP8 or VP9 in webm."""
    codec, pixels = stream.codec_context.name, stream.codec_context.pix_fmt
    if pixels not in ("yuv420p", "yuvj420p"):
        return False
    name = _container_name(container.format.name, head)
    if name == "mp4":
        return codec == "h264"
    return name == "webm" and codec.startswith(("vp8", "vp9", "libvpx"))
