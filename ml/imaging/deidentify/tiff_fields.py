"""Where the fields of a TIFF lie in its file, so that they can be overwritten in place.

Classic TIFF, BigTIFF and NDPI (64-bit offsets in a classic header: the upper halves follow each
directory). Nothing is believed that does not lie inside the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.formats.tiff import (
    MAX_DIRECTORIES,
    MAX_ENTRIES,
    SUB_IFDS,
    TiffBytes,
    is_ndpi,
    note_directory,
)
from ml.imaging.limits import MAX_TAG_BYTES

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8} | {
    13: 4, 16: 8, 17: 8, 18: 8
}  # fmt: skip
"""Bytes of one value of each type: TIFF 6.0, section 2, and BigTIFF."""
_FLOAT = 11
_CODES = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q", _FLOAT: "f"}
_CHUNK_BYTES = 2**20  # written over at once
ASCII = 2  # the type of texts
GPS = 34853
_LEADING = (SUB_IFDS, 34665, GPS, 40965)
"""Tags of the places of other directories: SubIFDs, Exif, GPS, Interoperability."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its type, how many values, and where their bytes lie."""

    tag: int
    kind: int
    count: int
    at: int
    size: int


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory: its fields, where its pointer to the next stands, and where that leads.

    Attributes:
        offset: of the directory in the file.
        listed: every field, one that comes twice too. fields: the last of each tag.
    """

    offset: int
    listed: tuple[Field, ...]
    fields: dict[int, Field]
    following_at: int
    following: int


class TiffFields(TiffBytes):
    """A TIFF file open for overwriting. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.is_ndpi = is_ndpi(path)
        self._file = path.open("r+b")
        super().__init__(self._file.fileno())

    def __enter__(self) -> TiffFields:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def directories(self) -> Iterator[Directory]:
        """Those of the main chain, in its order."""
        offset, seen = self._pointer(self.first_at), set[int]()
        while offset:
            note_directory(offset, seen)
            found = self.directory(offset)
            yield found
            offset = found.following

    def directory(self, offset: int) -> Directory:
        """The one at an offset."""
        entry_size, word = (20, 8) if self.is_big else (12, 4)
        count, start = self._count(offset)
        body = self.read(start, count * entry_size)
        listed: list[Field] = []
        for index in range(count):
            at = index * entry_size
            tag, kind = struct.unpack_from(self.order + "HH", body, at)
            n = self.unpack("Q" if self.is_big else "I", body[at + 4 : at + 4 + word])
            size = n * _SIZES.get(kind, 0)
            if size > MAX_TAG_BYTES:
                raise CorruptFileError(f"TIFF tag {tag} claims {size:,} bytes")
            place = start + at + 4 + word
            if size > word:
                far = self._high(start, count, index) << 32 if self.is_ndpi else 0
                place = far + self._number("Q" if self.is_big else "I", place)
            self.require(place, size)
            listed.append(Field(tag, kind, n, place, size))
        fields = {field.tag: field for field in listed}
        following_at = start + count * entry_size
        return Directory(offset, tuple(listed), fields, following_at, self._pointer(following_at))

    def inner(self, outer: Directory) -> Iterator[tuple[int, Directory]]:
        """Those that its fields lead to, and on from there, with the tag that led to each.

        What one leads to is read before it is given: it may be overwritten then.
        """
        waiting, seen = self._ways(0, outer), set[tuple[bool, int]]()
        while waiting:
            tag, offset = waiting.pop()
            if not offset or (tag == GPS, offset) in seen:
                continue
            seen.add((tag == GPS, offset))
            if len(seen) > MAX_DIRECTORIES:
                raise CorruptFileError("a TIFF directory leads to more others than any image has")
            found = self.directory(offset)
            waiting += self._ways(tag, found)
            yield tag, found

    def _ways(self, tag: int, directory: Directory) -> list[tuple[int, int]]:
        """(tag, offset) of each directory it leads to; ``tag`` led to it, 0 in the main chain."""
        ways = list[tuple[int, int]]()
        if tag and directory.following < self.size:  # what lies beyond it nobody can read
            ways.append((tag, directory.following))
        for field in directory.listed:
            if field.tag in _LEADING and field.kind != _FLOAT:
                if field.count > MAX_DIRECTORIES:
                    raise CorruptFileError(f"TIFF tag {field.tag} leads to {field.count:,} places")
                ways += [(field.tag, int(at)) for at in self.numbers(field)]
        return ways

    def write(self, at: int, data: bytes) -> None:
        """Overwrite bytes of the file; it never grows."""
        self.require(at, len(data))
        os.pwrite(self.fd, data, at)

    def blank(self, at: int, size: int, byte: bytes = b"\0") -> None:
        """Overwrite a stretch with one byte."""
        self.require(at, size)
        for start in range(at, at + size, _CHUNK_BYTES):
            self.write(start, byte * min(_CHUNK_BYTES, at + size - start))

    def data(self, field: Field) -> bytes:
        """The bytes of a field."""
        return self.read(field.at, field.size)

    def numbers(self, field: Field | None) -> list[float]:
        """The values of a numeric field; none where it is missing or of another type."""
        code = _CODES.get(field.kind) if field else None
        if field is None or code is None:
            return []
        return list(struct.unpack(f"{self.order}{field.count}{code}", self.data(field)))

    def text(self, field: Field | None) -> str:
        """The text of a field, "" where there is none."""
        return self.data(field).rstrip(b"\0").decode("latin-1") if field else ""

    def point(self, pointer_at: int, offset: int) -> None:
        """Let a pointer lead to another directory, or to none by 0."""
        self.write(pointer_at, struct.pack(self.order + self._wide, offset))

    @property
    def first_at(self) -> int:
        """Place of the pointer to the first directory."""
        return 8 if self.is_big else 4

    @property
    def _wide(self) -> str:
        return "Q" if self.is_big or self.is_ndpi else "I"

    def _pointer(self, at: int) -> int:
        return self._number(self._wide, at)

    def _count(self, offset: int) -> tuple[int, int]:
        count = self._number("Q" if self.is_big else "H", offset)
        if not 0 < count <= MAX_ENTRIES:
            raise CorruptFileError(f"a TIFF directory claims {count:,} tags")
        return count, offset + (8 if self.is_big else 2)

    def _high(self, start: int, count: int, index: int) -> int:
        return self._number("I", start + count * 12 + 8 + 4 * index)

    def _number(self, code: str, at: int) -> int:
        return self.unpack(code, self.read(at, struct.calcsize(code)))
