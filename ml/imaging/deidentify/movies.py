"""MP4, MOV and, by ``avi``, AVI: titles, places and dates are overwritten; no frame moves."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.deidentify.avi import clean_avi
from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.deidentify.overwriting import is_zero, part_name, write_at, zero
from ml.imaging.formats.boxes import IsoBox, boxes_in, kind_name, read_at
from ml.imaging.formats.sniff import read_head, video_format

_FILE, _FRAMES = b"", b"mdat"
_HOLDERS = frozenset(
    {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"mvex", b"moof", b"traf"}
)
_TOLD = (b"udta", b"meta", b"uuid")
_TIMES = (b"mvhd", b"tkhd", b"mdhd")
"""Boxes of ISO/IEC 14496-12 that hold others, notes of users, and times of creation."""
_KNOWN = {
    _FILE: {b"ftyp", b"styp", b"moov", b"moof", _FRAMES, b"mfra", b"sidx", b"ssix", b"prft"},
    b"moov": {b"mvhd", b"trak", b"mvex", b"iods", b"pssh", b"ctab", b"cmov"},
    b"trak": {b"tkhd", b"tref", b"edts", b"mdia", b"load", b"clip", b"matt", b"tapt", b"trgr"},
}
"""What may stand in those that writers of notes use too; whatever else does is not needed."""
_FREE = (b"free", b"skip", b"wide", bytes(4), b"")
"""Space, as programs leave it or zeros fill it, and bytes too few for a box."""
_HARMLESS = frozenset({b"\xa9too", b"\xa9swr", b"\xa9enc"})
"""Which program wrote the file."""
_NAME_AT = 24  # in a handler: version, two kinds and three reserved words come before
_HANDLERS = frozenset({b"VideoHandler", b"SoundHandler", b"DataHandler", b"SubtitleHandler"})
"""The names that FFmpeg gives every track."""
_MOST_NOTE_BYTES = 16 * 2**20  # a cover picture; what is larger is not looked into before it goes
_DEEPEST_NOTE = 8  # boxes of notes within each other; honest files have three
_DAMAGED = "the video file is truncated or damaged"


def clean_movie(path: Path, cleaned: Cleaned) -> None:
    """Overwrite notes in a video file where they stand, or say that its container has places for
    them that are not looked into.
    """
    name = video_format(read_head(path))
    if name == "mov":
        clean_mp4(path, cleaned)
    elif name == "avi":
        clean_avi(path, cleaned)
    elif name:
        cleaned.leaves(f"titles and dates inside the {name} container")


def clean_mp4(path: Path, cleaned: Cleaned) -> None:
    """Turn boxes with notes into free space, and set times of creation to none.

    Raises:
        CorruptFileError: a box cannot be passed, so that what stands behind it is not known.
    """
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for holder, box in _boxes(file, size):
            if box.kind in _TIMES:
                _forget_times(file, box, cleaned)
            elif box.kind == b"hdlr":
                _forget_name(file, box, cleaned)
            elif box.kind == b"cmov":
                cleaned.leaves("titles and dates inside the packed header of the mov container")
            elif names := _names(file, holder, box):
                for name in names:
                    cleaned.took(name)
                zero(file, box.body, box.end)
                if box.kind:
                    write_at(file, box.at + 4, b"free")
                if box.kind and holder == _FILE and box.end == size:  # whatever it claimed
                    write_at(file, box.at, bytes(4))


def _boxes(file: BinaryIO, size: int) -> Iterator[tuple[bytes, IsoBox]]:
    """Boxes with the kind of what they lie in, and those inside them, outer first."""
    waiting = [(_FILE, 0, size)]
    while waiting:
        holder, start, end = waiting.pop()
        # a recording that broke off ends inside its frames; what else is cut there is not needed
        whole = _KNOWN[_FILE] - {_FRAMES} if holder == _FILE else None
        for box in boxes_in(file, start, end, damage=_DAMAGED, whole=whole):
            yield holder, box
            if box.kind in _HOLDERS:
                waiting.append((box.kind, box.body, box.end))


def _names(file: BinaryIO, holder: bytes, box: IsoBox) -> list[str]:
    """The names of what goes with a box; none if it stays, or only names a program."""
    if box.kind in _TOLD:
        if box.kind == b"uuid" or box.end - box.body > _MOST_NOTE_BYTES:
            return [part_name(box.kind)]
        data = read_at(file, box.body, box.end - box.body, damage=_DAMAGED)
        return [kind_name(kind) for kind in _kinds(data, box.kind) if kind not in _HARMLESS]
    if box.kind in _FREE:
        return [] if is_zero(file, box.body, box.end) else [part_name(box.kind)]
    return [] if box.kind in _KNOWN.get(holder, {box.kind}) else [part_name(box.kind)]


def _kinds(data: bytes, kind: bytes, depth: int = 0) -> list[bytes]:
    """Kinds of the innermost boxes of notes; a ``meta`` may begin with a version or not.

    What cannot be followed counts as a note of the kind that it lies in.
    """
    if depth > _DEEPEST_NOTE:
        return [kind]
    if kind == b"meta" and data[4:8] != b"hdlr":
        data = data[4:]
    found, at = list[bytes](), 0
    while at + 8 <= len(data):
        size, inner = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            break
        body = data[at + 8 : at + size]
        at += size
        if inner in (b"meta", b"ilst", b"udta"):
            found += _kinds(body, inner, depth + 1)
        elif inner == b"hdlr":
            found += [inner] if body[_NAME_AT:].strip(b"\0") else []
        elif inner != b"free" or body.strip(b"\0"):
            found.append(inner)
    return [*found, kind] if data[at:].strip(b"\0") else found


def _forget_times(file: BinaryIO, box: IsoBox, cleaned: Cleaned) -> None:
    """Creation and modification, of 64 bits in version 1 of a header, else of 32."""
    start = box.body + 4
    stop = start + (16 if read_at(file, box.body, 1, damage=_DAMAGED) == b"\1" else 8)
    if stop > box.end:
        raise CorruptFileError(f"{_DAMAGED}: its box {kind_name(box.kind)} is too short")
    if not is_zero(file, start, stop):
        zero(file, start, stop)
        cleaned.took("creation time")


def _forget_name(file: BinaryIO, box: IsoBox, cleaned: Cleaned) -> None:
    """The name of a track, which a person or a program gave it."""
    start = min(box.body + _NAME_AT, box.end)
    most = min(box.end - start, _MOST_NOTE_BYTES)
    name = read_at(file, start, most, damage=_DAMAGED).rstrip(b"\0")
    if name and not {name, name[1:]} & _HANDLERS:
        zero(file, start, box.end)
        cleaned.took("name of a track")
