"""Overwriting of byte ranges in place; no byte of the file moves."""

from __future__ import annotations

import os
from typing import BinaryIO

from ml.imaging.formats.iso_boxes import kind_name

_NAMED = {b"": "data between boxes"} | dict.fromkeys(
    (b"free", b"skip", b"wide", b"JUNK"), "free space"
)
_CHUNK_BYTES = 2**20  # overwritten or read at once


def write_at(file: BinaryIO, at: int, data: bytes) -> None:
    """Overwrite the bytes at an offset."""
    os.pwrite(file.fileno(), data, at)


def zero(file: BinaryIO, start: int, end: int) -> None:
    """Overwrite a range with zeros."""
    for at in range(start, end, _CHUNK_BYTES):
        write_at(file, at, bytes(min(_CHUNK_BYTES, end - at)))


def is_zero(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a range contains only zeros."""
    return not any(
        os.pread(file.fileno(), min(_CHUNK_BYTES, end - at), at).strip(b"\0")
        for at in range(start, end, _CHUNK_BYTES)
    )


def part_name(kind: bytes) -> str:
    """Name of a part of a video in the list of removed fields."""
    return _NAMED.get(kind) or kind_name(kind)
