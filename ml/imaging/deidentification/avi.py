"""AVI: identifying chunks are overwritten and turned into junk, which players skip."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.deidentification.overwrite import is_zero, part_name, write_at, zero
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.iso_boxes import IsoBox, kind_name, read_at

_LISTS = (b"AVIX", b"hdrl", b"strl", b"odml")
_FRAMES, _INFO, _JUNK = b"movi", b"INFO", b"JUNK"
_PLAYBACK_CHUNKS = frozenset(
    {b"avih", b"strh", b"strf", b"strd", b"indx", b"vprp", b"dmlh", b"idx1"}
)
"""Chunks needed to play the video, by the AVI and OpenDML formats."""
_CAMERAS = (b"AVIF", b"CASI", b"Zora")
"""First bytes of notes that cameras write into a codec's data."""
_MAY_BE_CUT = (_FRAMES, b"RIFF", b"idx1")
_PROGRAM = b"ISFT"
_RIFF_BYTES = 12  # before the first chunk
_MAX_INFO_BYTES = 2**20  # of titles; larger lists are removed unread
_MAX_CHUNKS = 100_000  # outside the frames; bounds the parsing of a malicious file
_DAMAGED = "the AVI file is damaged or cut"


def clean_avi(path: Path, cleaned: DeidentificationResult) -> None:
    """Keep the frames and the chunks needed to play them.

    Raises:
        CorruptFileError: A chunk ends outside its parent.
    """
    with path.open("r+b") as file:
        for box in _chunks(file, os.fstat(file.fileno()).st_size):
            names = [] if is_zero(file, box.body, box.end) else _names(file, box)
            for name in names:
                cleaned.add_removed(name)
            if names:
                zero(file, box.body, box.end)
                if box.kind:
                    write_at(file, box.at, _JUNK + struct.pack("<I", box.end - box.body))


def _chunks(file: BinaryIO, size: int) -> Iterator[IsoBox]:
    """Chunks outside the frames; bytes that form no chunk have an empty kind."""
    pending, count = [(_RIFF_BYTES, size)], 0
    while pending:
        at, end = pending.pop()
        while at + 8 <= end:
            kind, length = struct.unpack("<4sI", read_at(file, at, 8, damage=_DAMAGED))
            is_list = kind in (b"LIST", b"RIFF") and at + 12 <= end
            inside = read_at(file, at + 8, 4, damage=_DAMAGED) if is_list else b""
            stop, count = at + 8 + length, count + 1
            if inside == _FRAMES and length == 0:  # of a recording that broke off
                stop = end
            is_needed = kind in _PLAYBACK_CHUNKS or inside in _LISTS
            if stop > end and is_needed and not {kind, inside} & {*_MAY_BE_CUT}:
                raise CorruptFileError(f"{_DAMAGED}: its part {kind_name(kind)} ends beyond it")
            if count > _MAX_CHUNKS:
                raise CorruptFileError(f"{_DAMAGED}: it has more than {_MAX_CHUNKS:,} parts")
            stop = min(stop, end)
            if inside in _LISTS:
                pending.append((at + 12, stop))
            elif inside != _FRAMES:
                yield IsoBox(kind, at, at + 8, stop)
            at = stop + length % 2
        if at < end:
            yield IsoBox(b"", at, at, end)


def _names(file: BinaryIO, box: IsoBox) -> list[str]:
    """Names of the fields removed with a chunk; empty if the chunk stays."""
    size = min(box.end - box.body, _MAX_INFO_BYTES)
    data = read_at(file, box.body, size, damage=_DAMAGED)
    if box.kind == b"LIST" and data.startswith(_INFO) and size == box.end - box.body:
        return _titles(data)
    is_allowed = box.kind in _PLAYBACK_CHUNKS and not (
        box.kind == b"strd" and data.startswith(_CAMERAS)
    )
    return [] if is_allowed else [part_name(box.kind)]


def _titles(data: bytes) -> list[str]:
    names, at = list[str](), len(_INFO)
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        if kind != _PROGRAM or at + 8 + size > len(data):
            names.append(kind_name(kind))
        at += 8 + size + size % 2
    return [*names, "LIST"] if data[at:].strip(b"\0") else names
