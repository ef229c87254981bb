"""Random access to frames by their index.

Decoding begins at a key frame well before the requested frame, and each decoded frame is identified
by its packet. Time stamps are not used: where they repeat, two frames share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError
from ml.imaging.videos.containers import DecodeReport, decode_frames, open_video, seek_to
from ml.imaging.videos.display import display_geometry
from ml.types import DisplayGeometry, FrameTable, SeekPoint

_LEADS_S = (1.0, 10.0)
"""Decoding begins so long before a frame: a group of pictures may refer to the one before it, and
a damaged or refreshed one needs several. The last resort is the beginning of the file."""


@contextmanager
def frames_from(
    path: str | Path, table: FrameTable, first: int = 0
) -> Iterator[tuple[DisplayGeometry, Iterator[tuple[int, VideoFrame]]]]:
    """Open a video at a frame: the geometry of all its pictures, and (index, frame) from there on.

    Raises:
        CorruptFileError: not one frame decodes.
    """
    with open_video(path) as (container, stream):
        start = next(decode_frames(container, stream), None)
        if start is None:
            raise CorruptFileError("no frame of the video can be decoded")
        geometry, _ = display_geometry(stream, start[1])
        frames = FrameReader(container, stream, table).from_index(first) if first else None
        if frames is not None:
            yield geometry, frames
            return
    with open_video(path) as (container, stream):
        frames = FrameReader(container, stream, table).from_start()
        yield geometry, (at for at in frames if at[0] >= first)


class FrameReader:
    """An open video whose frames are read by the index in its table."""

    def __init__(self, container: InputContainer, stream: VideoStream, table: FrameTable) -> None:
        self._container, self._stream, self._table = container, stream, table
        self._order = np.argsort(table.packet, kind="stable")
        self._packets = table.packet[self._order]
        starts = self._order[np.searchsorted(self._packets, table.seek_points[:, 0])]
        ascending = np.argsort(starts, kind="stable")
        self._starts = starts[ascending]
        self._points = [SeekPoint(*row) for row in table.seek_points[ascending].tolist()]
        self._packet_numbers = {
            (point.position, point.size): point.packet for point in self._points
        }

    def from_start(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (index, frame) of every frame that decodes; the container is at its beginning."""
        return self._with_indexes(decode_frames(self._container, self._stream))

    def from_index(self, first: int) -> Iterator[tuple[int, VideoFrame]] | None:
        """Seek, and yield (index, frame) from a frame on; None if no seek leads to it."""
        for point in self._points_before(first):
            for index, frame in (frames := self._from_point(point)):
                if index == first:
                    return _with_first((index, frame), frames)
                if index > first:
                    break
        return None

    def last_group(self, report: DecodeReport) -> Iterator[tuple[int, VideoFrame]]:
        """Seek to the last key frame and yield (index, frame) from there on."""
        return self._from_point(self._points[-1], report) if self._points else iter(())

    def key_frame_before(self, index: int) -> tuple[int, VideoFrame] | None:
        """The nearest key frame at or before a frame, with its index; None if none is reached."""
        at = int(np.searchsorted(self._starts, index, side="right")) - 1
        return next(self._from_point(self._points[at]), None) if at >= 0 else None

    def _points_before(self, first: int) -> Iterator[SeekPoint]:
        before = -1
        for lead_s in _LEADS_S:
            latest = self._table.pts[first] - lead_s / self._table.time_base_s
            start = int(np.searchsorted(self._table.pts, latest, side="right")) - 1
            at = int(np.searchsorted(self._starts, start, side="right")) - 1
            if at < 0:
                return
            if at != before:
                yield self._points[at]
            before = at

    def _from_point(
        self, point: SeekPoint, report: DecodeReport | None = None
    ) -> Iterator[tuple[int, VideoFrame]]:
        if seek_to(self._container, self._stream, point):
            frames = decode_frames(
                self._container, self._stream, report, packet_numbers=self._packet_numbers
            )
            yield from self._with_indexes(frames)

    def _with_indexes(
        self, frames: Iterator[tuple[int, VideoFrame]]
    ) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (index, frame) by the table; frames that are not in it are left out."""
        last, repeats = -1, 0
        for packet, frame in frames:
            repeats = repeats + 1 if packet == last else 0
            last = packet
            index = self._index(packet, repeats)
            if index is not None:
                yield index, frame

    def _index(self, packet: int, repeats: int) -> int | None:
        """Index of a packet's frame, or of a later one of several that it holds."""
        at = int(np.searchsorted(self._packets, packet)) + repeats
        is_known = at < len(self._packets) and int(self._packets[at]) == packet
        return int(self._order[at]) if is_known else None


def _with_first(
    first: tuple[int, VideoFrame], later: Iterator[tuple[int, VideoFrame]]
) -> Iterator[tuple[int, VideoFrame]]:
    yield first
    yield from later
