"""MP4, MOV and AVI: titles, places and dates are overwritten; no frame moves in the file."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.formats.sniff import read_head, video_format

_HOLDERS = (b"moov", b"trak", b"mdia", b"minf", b"moof", b"traf")
_TOLD = (b"udta", b"meta", b"uuid")
_TIMES = (b"mvhd", b"tkhd", b"mdhd")
"""Boxes of ISO/IEC 14496-12 that hold others, notes of users, and times of creation."""
_HARMLESS = frozenset({b"\xa9too", b"\xa9swr", b"\xa9enc", b"ISFT"})
"""Which program wrote the file."""
_MOST_NOTE_BYTES = 16 * 2**20  # a cover picture; what is larger is not looked into before it goes
_MAX_BOXES = 100_000  # ends a file that was made to be walked forever
_TIME_BYTES = {0: 8, 1: 16}
"""Creation and modification, of version 0 and 1 of a header."""


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    at: int
    body: int
    end: int


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
    """Turn boxes with notes into free space, and set times of creation to none."""
    with path.open("r+b") as file:
        for box in _boxes(file, 0, os.fstat(file.fileno()).st_size):
            if box.kind in _TOLD and (names := _notes(file, box)):
                for name in names:
                    cleaned.took(name)
                _over(file, box.at + 4, b"free")
                _zero(file, box.body, box.end)
            elif box.kind in _TIMES:
                _forget_times(file, box, cleaned)


def clean_avi(path: Path, cleaned: Cleaned) -> None:
    """Turn notes (the list INFO, the date, names of streams) into junk, which players skip."""
    with path.open("r+b") as file:
        for box in _chunks(file, 12, os.fstat(file.fileno()).st_size):
            data = _read(file, box.body, min(box.end - box.body, _MOST_NOTE_BYTES))
            if box.kind == b"LIST":
                names = [name for name in _info_names(data) if name not in _HARMLESS]
            else:
                names = [box.kind] if data.strip(b"\0 \r\n") else []
            for name in names:
                cleaned.took(_shown(name))
            if names:
                _over(file, box.at, b"JUNK")
                _zero(file, box.body, box.end)


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[_Box]:
    """Boxes and those inside them, outer first."""
    waiting, seen = [(start, end)], 0
    while waiting:
        at, end = waiting.pop()
        while at + 8 <= end:
            seen += 1
            size, kind = struct.unpack(">I4s", _read(file, at, 8))
            body = at + 8
            if size == 1:
                size, body = struct.unpack(">Q", _read(file, body, 8))[0], at + 16
            size = size or end - at
            if size < body - at or at + size > end or seen > _MAX_BOXES:
                return  # what follows cannot be told; the decoder says whether it is damaged
            yield _Box(kind, at, body, at + size)
            if kind in _HOLDERS:
                waiting.append((body, at + size))
            at += size


def _chunks(file: BinaryIO, at: int, end: int) -> Iterator[_Box]:
    """Chunks of notes of an AVI file, in its header or beside it."""
    while at + 8 <= end:
        kind, size = struct.unpack("<4sI", _read(file, at, 8))
        inside = _read(file, at + 8, 4) if kind == b"LIST" and size >= 4 else b""
        if at + 8 + size > end:
            return
        if inside in (b"hdrl", b"strl"):
            yield from _chunks(file, at + 12, at + 8 + size)
        elif inside == b"INFO" or kind in (b"IDIT", b"strn"):
            yield _Box(kind, at, at + 8, at + 8 + size)
        at += 8 + size + size % 2


def _notes(file: BinaryIO, box: _Box) -> list[str]:
    """The names of notes in a box of notes, none if it only names a program."""
    if box.kind == b"uuid":
        return ["uuid"]
    if box.end - box.body > _MOST_NOTE_BYTES:
        return [_shown(box.kind)]
    kinds = _kinds(_read(file, box.body, box.end - box.body), box.kind)
    return [_shown(kind) for kind in kinds if kind not in _HARMLESS]


def _kinds(data: bytes, kind: bytes) -> list[bytes]:
    """Kinds of the innermost boxes of notes; a ``meta`` may begin with a version or not."""
    if kind == b"meta" and data[4:8] != b"hdlr":
        data = data[4:]
    found, at = list[bytes](), 0
    while at + 8 <= len(data):
        size, inner = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            break
        if inner in (b"meta", b"ilst", b"udta"):
            found += _kinds(data[at + 8 : at + size], inner)
        elif inner not in (b"hdlr", b"free"):
            found.append(inner)
        at += size
    return found


def _info_names(data: bytes) -> list[bytes]:
    names, at = list[bytes](), 4
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        names.append(kind)
        at += 8 + size + size % 2
    return names


def _forget_times(file: BinaryIO, box: _Box, cleaned: Cleaned) -> None:
    version = _read(file, box.body, 1)[0]
    size = _TIME_BYTES.get(version, 0)
    if size and _read(file, box.body + 4, size).strip(b"\0"):
        _zero(file, box.body + 4, box.body + 4 + size)
        cleaned.took("creation time")


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    data = os.pread(file.fileno(), size, at)
    if len(data) < size:
        raise CorruptFileError("the video file is truncated: a part of its container is missing")
    return data


def _over(file: BinaryIO, at: int, data: bytes) -> None:
    os.pwrite(file.fileno(), data, at)


def _zero(file: BinaryIO, at: int, end: int) -> None:
    for start in range(at, end, 2**20):
        _over(file, start, b"\0" * min(2**20, end - start))


def _shown(kind: bytes) -> str:
    return kind.decode("latin-1").strip("\0 ")
