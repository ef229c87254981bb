"""The frame table: from packets where they can be trusted, else from decoding everything."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.limits import MAX_FRAMES
from ml.imaging.videos.containers import (
    DecodeReport,
    decode_frames,
    open_video,
    seek_back,
    time_base_of,
)
from ml.types import DisplayGeometry, FrameTable, Progress, VideoInfo, no_progress

_TRUSTED_CONTAINERS = ("mov", "matroska")
_TRUSTED_CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg", "prores")
"""Codecs that show one frame a packet. VP8 hides some packets, MPEG-1/2 may split pictures."""
_HEAD_FRAMES = 60  # two seconds: time stamps that start oddly do so at once
_CUT_SHARE = 0.98
"""Below this share of the promised frames or duration a file counts as cut."""


@dataclass(slots=True)
class _Packets:
    pts: list[int]
    key: list[bool]
    promised: int
    promised_s: float
    whole: bool
    trusted: bool
    time_base: Fraction


def frame_table(path: str | Path, progress: Progress = no_progress) -> tuple[FrameTable, list[str]]:
    """Every decodable frame's PTS in presentation order, and warnings for the user.

    Raises:
        CorruptFileError: not one frame decodes.
        TooLargeError: more than ``MAX_FRAMES`` frames.
    """
    packets = _read_packets(path)
    report = DecodeReport()
    by_packet = _table(packets.pts, packets.key, packets.time_base)
    if packets.trusted and packets.whole and _agrees(path, by_packet):
        table = by_packet
    else:
        table = _decode_table(path, packets, report, progress)
    if not len(table):
        raise CorruptFileError("no frame of the video can be decoded")
    return table, _warnings(table, packets, report)


def _read_packets(path: str | Path) -> _Packets:
    with open_video(path) as (container, stream):
        base = time_base_of(stream)
        pts: list[int] = []
        key: list[bool] = []
        whole = True
        trusted = _is_trusted(container, stream)
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                break
            except av.error.FFmpegError:
                whole = False
                break
            if not packet.size:
                continue
            if packet.pts is None or packet.is_discard:
                trusted = False
            whole = whole and not packet.is_corrupt
            pts.append(packet.pts if packet.pts is not None else len(pts))
            key.append(packet.is_keyframe)
            if len(pts) > MAX_FRAMES:
                raise TooLargeError(f"the video has more than {MAX_FRAMES:,} frames")
        promised = stream.frames
        promised_s = _promised_s(container, stream)
    whole = whole and promised in (0, len(pts))
    return _Packets(pts, key, promised, promised_s, whole, trusted, base)


def _promised_s(container: InputContainer, stream: VideoStream) -> float:
    """Duration the header states, 0 if it is an estimate from the file's size."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if container.format.name.startswith("matroska") and container.duration:
        return container.duration / 1_000_000
    return 0.0


def _is_trusted(container: InputContainer, stream: VideoStream) -> bool:
    return container.format.name.startswith(
        _TRUSTED_CONTAINERS
    ) and stream.codec_context.name.startswith(_TRUSTED_CODECS)


def _table(pts: list[int], key: list[bool], base: Fraction) -> FrameTable:
    times = np.asarray(pts, np.int64)
    order = np.argsort(times, kind="stable")
    return FrameTable(times[order], np.asarray(key, np.bool_)[order], float(base))


def _agrees(path: str | Path, table: FrameTable) -> bool:
    """Decode the head and the last group of pictures and compare every time stamp."""
    if not len(table) or np.any(np.diff(table.pts) <= 0):
        return False
    head = min(_HEAD_FRAMES, len(table))
    if _decoded_pts(path, None, head) != table.pts[:head].tolist():
        return False
    keys = np.flatnonzero(table.key)
    if not len(keys):
        return False
    start = int(keys[-1])
    tail = _decoded_pts(path, int(table.pts[start]), len(table) + 1)
    expected: list[int] = table.pts[start:].tolist()
    return tail[-len(expected) :] == expected


def _decoded_pts(path: str | Path, seek_pts: int | None, limit: int) -> list[int]:
    report = DecodeReport()
    found: list[int] = []
    with open_video(path) as (container, stream):
        if seek_pts is not None and not seek_back(container, stream, seek_pts):
            return []
        for pts, _ in decode_frames(container, stream, report):
            found.append(pts)
            if len(found) >= limit:
                break
    return [] if report.damaged or report.cut else found


def _decode_table(
    path: str | Path, packets: _Packets, report: DecodeReport, progress: Progress
) -> FrameTable:
    pts: list[int] = []
    key: list[bool] = []
    total = max(len(packets.pts), 1)
    with open_video(path) as (container, stream):
        for at, frame in decode_frames(container, stream, report):
            pts.append(at)
            key.append(bool(frame.key_frame))
            if len(pts) % 50 == 0:
                progress(min(len(pts), total), total, "reading frames")
    return FrameTable(
        np.asarray(pts, np.int64), np.asarray(key, np.bool_), float(packets.time_base)
    )


def _warnings(table: FrameTable, packets: _Packets, report: DecodeReport) -> list[str]:
    found: list[str] = []
    count, promised = len(table), packets.promised
    span_s = _duration_s(table)
    short = bool(packets.promised_s) and span_s < packets.promised_s * _CUT_SHARE - 0.2
    if promised and count < promised * _CUT_SHARE:
        found.append(
            f"the file is truncated: {count:,} of {promised:,} frames ({span_s:.1f} s) can be "
            "decoded"
        )
    elif short:
        found.append(
            f"the file is truncated: {span_s:.1f} s of {packets.promised_s:.1f} s can be decoded"
        )
    elif report.cut or not packets.whole:
        found.append(f"the file is damaged or cut: {count:,} frames can be decoded")
    if report.damaged:
        found.append(f"{report.damaged:,} frames or packets are damaged")
    if len(report.shapes) > 1:
        found.append(
            "the size of its frames or the shape of their pixels changes on the way; all are shown "
            "at the size of the first"
        )
    left_out = report.without_time + report.out_of_order
    if left_out:
        found.append(f"{left_out:,} frames without their own time stamp were left out")
    return found


def _duration_s(table: FrameTable) -> float:
    """From the first frame to the end of the last one, taken as long as the median frame."""
    if len(table) < 2:
        return 0.0
    usual = float(np.median(np.diff(table.pts)))
    return (float(table.pts[-1] - table.pts[0]) + usual) * table.time_base_s


def describe(
    container: InputContainer,
    stream: VideoStream,
    table: FrameTable,
    geometry: DisplayGeometry,
    path: str | Path,
) -> VideoInfo:
    """Codec, container, duration and rate; warnings are the caller's to set."""
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
        browser_playable=_is_playable(container, stream, head),
    )


def _container_name(name: str, head: bytes) -> str:
    if name.startswith("mov"):
        return "mov" if head[8:12] == b"qt  " else "mp4"
    if name.startswith("matroska"):
        return "webm" if b"webm" in head else "mkv"
    return name.partition(",")[0]


def _is_playable(container: InputContainer, stream: VideoStream, head: bytes) -> bool:
    """What every current browser plays: 8-bit 4:2:0 h264 in mp4, VP8 or VP9 in webm."""
    codec, pixels = stream.codec_context.name, stream.codec_context.pix_fmt
    if pixels not in ("yuv420p", "yuvj420p"):
        return False
    name = _container_name(container.format.name, head)
    if name == "mp4":
        return codec == "h264"
    return name == "webm" and codec.startswith(("vp8", "vp9", "libvpx"))
