"""De-identification of videos: titles, places and dates are overwritten; no frame moves."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.deidentification.avi import clean_avi
from ml.imaging.deidentification.overwrite import is_zero, part_name, write_at, zero
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.iso_boxes import IsoBox, boxes_in, kind_name, read_at
from ml.imaging.formats.sniff import read_head, video_format

_FILE, _FRAMES = b"", b"mdat"
_HOLDERS = frozenset(
    {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"mvex", b"moof", b"traf"}
)
_NOTES = (b"udta", b"meta", b"uuid")
_TIMES = (b"mvhd", b"tkhd", b"mdhd")
"""Boxes of ISO/IEC 14496-12 that hold others, notes of users, and times of creation."""
_ALLOWED = {
    _FILE: {b"ftyp", b"styp", b"moov", b"moof", _FRAMES, b"mfra", b"sidx", b"ssix", b"prft"},
    b"moov": {b"mvhd", b"trak", b"mvex", b"iods", b"pssh", b"ctab", b"cmov"},
    b"trak": {b"tkhd", b"tref", b"edts", b"mdia", b"load", b"clip", b"matt", b"tapt", b"trgr"},
}
"""Allowed boxes of parents that also hold notes; any other box there is removed."""
_FREE = (b"free", b"skip", b"wide", bytes(4), b"")
"""Space, as programs leave it or zeros fill it, and bytes too few for a box."""
_HARMLESS = frozenset({b"\xa9too", b"\xa9swr", b"\xa9enc"})
"""Boxes that name the program that wrote the file."""
_NAME_AT = 24  # in a handler: version, two kinds and three reserved words come before
_HANDLERS = frozenset({b"VideoHandler", b"SoundHandler", b"DataHandler", b"SubtitleHandler"})
"""The names that FFmpeg gives every track."""
_MAX_NOTE_BYTES = 16 * 2**20  # a cover picture; larger notes are removed unread
_MAX_NOTE_DEPTH = 8  # nesting of boxes of notes; ordinary files have three levels
_DAMAGED = "the video file is truncated or damaged"


def clean_video(path: Path, cleaned: DeidentificationResult) -> None:
    """Overwrite notes in a video file in place, or record that its container may have some."""
    name = video_format(read_head(path))
    if name == "mov":
        clean_mp4(path, cleaned)
    elif name == "avi":
        clean_avi(path, cleaned)
    elif name:
        cleaned.add_left(f"titles and dates inside the {name} container")


def clean_mp4(path: Path, cleaned: DeidentificationResult) -> None:
    """Turn boxes with notes into free space, and clear creation times.

    Raises:
        CorruptFileError: A box's size is invalid, so that the rest of the file cannot be parsed.
    """
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for holder, box in _boxes(file, size):
            if box.kind in _TIMES:
                _clear_times(file, box, cleaned)
            elif box.kind == b"hdlr":
                _clear_name(file, box, cleaned)
            elif box.kind == b"cmov":
                cleaned.add_left("titles and dates inside the packed header of the mov container")
            elif names := _names(file, holder, box):
                for name in names:
                    cleaned.add_removed(name)
                zero(file, box.body, box.end)
                if box.kind:
                    write_at(file, box.at + 4, b"free")
                if box.kind and holder == _FILE and box.end == size:  # size 0: up to the end
                    write_at(file, box.at, bytes(4))


def _boxes(file: BinaryIO, size: int) -> Iterator[tuple[bytes, IsoBox]]:
    """(kind of the parent, box) of all boxes, outer ones first."""
    pending = [(_FILE, 0, size)]
    while pending:
        holder, start, end = pending.pop()
        # An interrupted recording ends within its frames: no other box may be cut off.
        required = _ALLOWED[_FILE] - {_FRAMES} if holder == _FILE else None
        for box in boxes_in(file, start, end, damage=_DAMAGED, required=required):
            yield holder, box
            if box.kind in _HOLDERS:
                pending.append((box.kind, box.body, box.end))


def _names(file: BinaryIO, holder: bytes, box: IsoBox) -> list[str]:
    """Names of the fields removed with a box; none if it stays or only names a program."""
    if box.kind in _NOTES:
        if box.kind == b"uuid" or box.end - box.body > _MAX_NOTE_BYTES:
            return [part_name(box.kind)]
        data = read_at(file, box.body, box.end - box.body, damage=_DAMAGED)
        return [kind_name(kind) for kind in _kinds(data, box.kind) if kind not in _HARMLESS]
    if box.kind in _FREE:
        return [] if is_zero(file, box.body, box.end) else [part_name(box.kind)]
    return [] if box.kind in _ALLOWED.get(holder, {box.kind}) else [part_name(box.kind)]


def _kinds(data: bytes, kind: bytes, depth: int = 0) -> list[bytes]:
    """Kinds of the innermost boxes of notes; a ``meta`` may begin with a version or not.

    Content that cannot be parsed counts as a note of its parent's kind.
    """
    if depth > _MAX_NOTE_DEPTH:
        return [kind]
    if kind == b"meta" and data[4:8] != b"hdlr":
        data = data[4:]
    kinds, at = list[bytes](), 0
    while at + 8 <= len(data):
        size, inner = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            break
        body = data[at + 8 : at + size]
        at += size
        if inner in (b"meta", b"ilst", b"udta"):
            kinds += _kinds(body, inner, depth + 1)
        elif inner == b"hdlr":
            kinds += [inner] if body[_NAME_AT:].strip(b"\0") else []
        elif inner != b"free" or body.strip(b"\0"):
            kinds.append(inner)
    return [*kinds, kind] if data[at:].strip(b"\0") else kinds


def _clear_times(file: BinaryIO, box: IsoBox, cleaned: DeidentificationResult) -> None:
    """Clear the times of creation and modification: 64 bits in version 1 of a header, else 32."""
    start = box.body + 4
    stop = start + (16 if read_at(file, box.body, 1, damage=_DAMAGED) == b"\1" else 8)
    if stop > box.end:
        raise CorruptFileError(f"{_DAMAGED}: its box {kind_name(box.kind)} is too short")
    if not is_zero(file, start, stop):
        zero(file, start, stop)
        cleaned.add_removed("creation time")


def _clear_name(file: BinaryIO, box: IsoBox, cleaned: DeidentificationResult) -> None:
    """Clear the name of a track, unless it is a usual one of a program."""
    start = min(box.body + _NAME_AT, box.end)
    size = min(box.end - start, _MAX_NOTE_BYTES)
    name = read_at(file, start, size, damage=_DAMAGED).rstrip(b"\0")
    if name and not {name, name[1:]} & _HANDLERS:
        zero(file, start, box.end)
        cleaned.add_removed("name of a track")
