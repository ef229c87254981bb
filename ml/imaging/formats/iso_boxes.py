"""Boxes with size, kind and content (ISO/IEC 14496-12; ITU-T T.800, annex I)."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ml.errors import CorruptFileError

_MAX_BOXES = 100_000  # boxes in a row; ends the walk through a malicious file
_HEAD_BYTES = 8  # the size and the kind


@dataclass(frozen=True, slots=True)
class IsoBox:
    """A box: offsets of its start, its content and its end. Empty kind: bytes outside boxes."""

    kind: bytes
    at: int
    body: int
    end: int


def boxes_in(
    file: BinaryIO,
    start: int,
    end: int,
    *,
    damage: str,
    required: Collection[bytes] | None = None,
) -> Iterator[IsoBox]:
    """Boxes of a byte range, in order; the last item may be bytes too few for a box.

    Args:
        damage: Description of the damage if a box's size is invalid.
        required: Kinds that must fit into the range; others are cut at its end. None: all must.
    Raises:
        CorruptFileError: A box's size is invalid, or there are too many boxes.
    """
    at, count = start, 0
    while at + _HEAD_BYTES <= end:
        size, kind = struct.unpack(">I4s", read_at(file, at, _HEAD_BYTES, damage=damage))
        body = at + _HEAD_BYTES
        if size == 1:
            (size,) = struct.unpack(">Q", read_at(file, body, 8, damage=damage))
            body += 8
        elif size == 0:
            size = end - at
        if at + size > end and required is not None and kind not in required:
            size = end - at
        count += 1
        if size < body - at or at + size > end:
            raise CorruptFileError(f"{damage}: its box {kind_name(kind)} cannot be passed")
        if count > _MAX_BOXES:
            raise CorruptFileError(f"{damage}: it has more than {_MAX_BOXES:,} boxes in a row")
        yield IsoBox(kind, at, body, at + size)
        at += size
    if at < end:
        yield IsoBox(b"", at, at, end)


def read_at(file: BinaryIO, at: int, size: int, *, damage: str) -> bytes:
    """Read exactly ``size`` bytes; raises ``CorruptFileError`` beyond the end of the file."""
    data = os.pread(file.fileno(), size, at)
    if len(data) < size:
        raise CorruptFileError(damage)
    return data


def kind_name(kind: bytes) -> str:
    """Printable name of a kind, "unnamed data" if it has none."""
    word = kind.decode("latin-1").strip()
    return word if word and word.isprintable() else "unnamed data"
