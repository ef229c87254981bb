"""Boxes and markers of JPEG 2000 files: claimed sizes and completeness.

Pixels are not decoded. Boxes are those of ITU-T T.800, annex I, markers those of annex A.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.formats.iso_boxes import IsoBox, boxes_in
from ml.imaging.limits import require_jpeg2000_size

_BOXED, _BARE = b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"
STREAM = b"jp2c"
"""The box of the coded pixels."""
HEADER = b"jp2h"
"""The box of their display properties; it holds others."""
COMMENT, END = 0xFF64, 0xFFD9
_SIZE, _PART, _DATA = 0xFF51, 0xFF90, 0xFF93
_COMPONENTS_AT = 34  # bytes of the image's and the tiles' places: ITU-T T.800, table A.9
_MAX_PARTS = 1_000_000  # ends the walk through a malicious file; a scan has some thousand
_DAMAGED = "the JPEG 2000 image is truncated or damaged"


@dataclass(frozen=True, slots=True)
class Jp2Segment:
    """A marker with its content, which ends where the next begins."""

    marker: int
    body: int
    end: int


def is_jpeg2000(head: bytes) -> bool:
    """Return whether the first bytes of a file are a JPEG 2000 image, in its boxes or bare."""
    return head.startswith((_BOXED, _BARE))


def check_jpeg2000(path: Path) -> None:
    """Reject an image that is cut, or too large to decode, before decoding.

    Raises:
        CorruptFileError: a part of it is missing.
        TooLargeError: it claims more pixels than ``ml.imaging.limits`` allows.
    """
    with path.open("rb") as file:
        stream = stream_of(file)
        for segment in segments(file, stream):
            if segment.marker == _SIZE:
                file.seek(segment.body + 2)  # the capabilities come first
                right, bottom, left, top = struct.unpack(">4I", _read(file, 16))
                require_jpeg2000_size(max(0, right - left), max(0, bottom - top))


def jpeg2000_bits(path: Path) -> tuple[int, int]:
    """(bits of its deepest component, number of components) of an image that was checked."""
    with path.open("rb") as file:
        for segment in segments(file, stream_of(file)):
            if segment.marker == _SIZE:
                file.seek(segment.body + _COMPONENTS_AT)
                (count,) = struct.unpack(">H", _read(file, 2))
                depths = _read(file, 3 * count)[::3]  # depth, and the steps of its grid
                return max((depth & 0x7F) + 1 for depth in depths), count
    raise CorruptFileError(_DAMAGED)


def boxes(file: BinaryIO) -> Iterator[IsoBox]:
    """Boxes of a file, and those in its header; none of a bare stream."""
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    if file.read(len(_BARE)) == _BARE:
        return
    for box in _boxes(file, 0, size):
        yield box
        if box.kind == HEADER:
            yield from _boxes(file, box.body, box.end)


def stream_of(file: BinaryIO) -> IsoBox:
    """The coded pixels.

    Raises:
        CorruptFileError: there are none.
    """
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    if file.read(len(_BARE)) == _BARE:
        return IsoBox(STREAM, 0, 0, size)
    for box in boxes(file):
        if box.kind == STREAM:
            return box
    raise CorruptFileError(_DAMAGED)


def segments(file: BinaryIO, stream: IsoBox) -> Iterator[Jp2Segment]:
    """The segments in the headers of the image and of its tiles, in order.

    Raises:
        CorruptFileError: a stated part is not in the stream.
    """
    at, part_end, segment_count = stream.body + 2, 0, 0
    while at < stream.end:
        segment_count += 1
        file.seek(at)
        (marker,) = struct.unpack(">H", _read(file, 2))
        if marker == END:
            yield Jp2Segment(marker, at + 2, at + 2)
            return
        if marker == _DATA:
            at = part_end
            continue
        (size,) = struct.unpack(">H", _read(file, 2))
        end = at + 2 + size
        if marker < 0xFF00 or size < 2 or end > stream.end or segment_count > _MAX_PARTS:
            raise CorruptFileError(_DAMAGED)
        if marker == _PART:
            part_end = _end_of_part(file, at, stream)
        yield Jp2Segment(marker, at + 4, end)
        at = end


def _end_of_part(file: BinaryIO, at: int, stream: IsoBox) -> int:
    """End of a tile-part; length 0 marks the last one."""
    _, length = struct.unpack(">HI", _read(file, 6))
    end = at + int(length) if length else stream.end
    if end <= at + 12 or end > stream.end:
        raise CorruptFileError(_DAMAGED)
    return end


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[IsoBox]:
    for box in boxes_in(file, start, end, damage=_DAMAGED):
        if not box.kind:
            raise CorruptFileError(_DAMAGED)
        yield box


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise CorruptFileError(_DAMAGED)
    return data
