"""Boxes: size, kind and content, as ISO/IEC 14496-12 and ITU-T T.800, annex I, have them."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ml.errors import CorruptFileError

_MOST = 100_000  # beside each other; ends a file that was made to be walked forever
_HEAD_BYTES = 8  # the size and the kind


@dataclass(frozen=True, slots=True)
class IsoBox:
    """A box: where it, its content and what follows it begin. Without a kind: bytes of no box."""

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
    whole: Collection[bytes] | None = None,
) -> Iterator[IsoBox]:
    """What fills a stretch of a file, in order; at its end perhaps bytes too few for a box.

    Args:
        damage: what is wrong with the file if a box cannot be passed.
        whole: kinds that must fit into the stretch; others are cut at its end. None: all must.
    Raises:
        CorruptFileError: a box that cannot be passed, or too many.
    """
    at, seen = start, 0
    while at + _HEAD_BYTES <= end:
        size, kind = struct.unpack(">I4s", read_at(file, at, _HEAD_BYTES, damage=damage))
        body = at + _HEAD_BYTES
        if size == 1:
            (size,) = struct.unpack(">Q", read_at(file, body, 8, damage=damage))
            body += 8
        elif size == 0:
            size = end - at
        if at + size > end and whole is not None and kind not in whole:
            size = end - at
        seen += 1
        if size < body - at or at + size > end:
            raise CorruptFileError(f"{damage}: its box {kind_name(kind)} cannot be passed")
        if seen > _MOST:
            raise CorruptFileError(f"{damage}: it has more than {_MOST:,} boxes in a row")
        yield IsoBox(kind, at, body, at + size)
        at += size
    if at < end:
        yield IsoBox(b"", at, at, end)


def read_at(file: BinaryIO, at: int, size: int, *, damage: str) -> bytes:
    """Exactly so many bytes; raises ``CorruptFileError`` beyond the end of the file."""
    data = os.pread(file.fileno(), size, at)
    if len(data) < size:
        raise CorruptFileError(damage)
    return data


def kind_name(kind: bytes) -> str:
    """A kind as a word, also where it is none."""
    word = kind.decode("latin-1").strip()
    return word if word and word.isprintable() else "unnamed data"
