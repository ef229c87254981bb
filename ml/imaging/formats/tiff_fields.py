"""Fields of TIFF directories, and the places of their values in the file.

Classic TIFF, BigTIFF and NDPI (64-bit offsets in a classic header: the upper halves follow each
directory), both byte orders. A field whose value is not inside the file is an error: tifffile drops
such fields, and OpenSlide and libvips differ in what they do. Sizes are checked before values are
read. Reasons for this reader: docs/adr/0053-tiff-directories.md.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.limits import MAX_TAG_BYTES, MAX_TAGS_BYTES

MAX_DIRECTORIES = 4_096  # a slide has a dozen
_MAX_FIELDS = 4_096  # a page has some thirty
ASCII, _LONGS = 2, (4, 13)
_DTYPES = {1: "u1", ASCII: "u1", 3: "u2", 4: "u4", 5: "u4", 6: "i1", 7: "u1", 8: "i2", 9: "i4"} | {
    10: "i4", 11: "f4", 12: "f8", 13: "u4", 16: "u8", 17: "i8", 18: "u8"
}  # fmt: skip
"""Types of values: TIFF 6.0, section 2, and BigTIFF."""
_BYTES = {
    kind: np.dtype(code).itemsize * (2 if kind in (5, 10) else 1) for kind, code in _DTYPES.items()
}
"""Bytes of one value; rationals are two numbers."""
OFFSET_TYPES = (3, 4, 13, 16, 18)
"""Types of offsets and byte counts: SHORT, LONG, IFD, LONG8, IFD8."""
TILE_OFFSETS, TILE_COUNTS, STRIP_OFFSETS, STRIP_COUNTS, SUB_IFDS = 324, 325, 273, 279, 330
_LISTS = (TILE_OFFSETS, TILE_COUNTS, STRIP_OFFSETS, STRIP_COUNTS, SUB_IFDS)
_NDPI = 65420
"""Hamamatsu's tag that marks an NDPI file."""


@dataclass(frozen=True, slots=True)
class TiffField:
    """One field of a directory.

    Attributes:
        kind: Type of the values, by number.
        at, size: Offset and bytes of the values; size 0 if the type is unknown.
        inline: The values, if they are in the directory itself.
        upper: Upper half of a single 64-bit value in an NDPI file.
    """

    tag: int
    kind: int
    count: int
    at: int
    size: int
    inline: bytes = b""
    upper: int = 0


@dataclass(frozen=True, slots=True)
class Ifd:
    """An image file directory.

    Attributes:
        listed: Every field, including repeated tags.
        fields: The last field of each tag.
        next_at: Offset of the pointer to the next directory.
        next_offset: That pointer, 0 at the end of a chain.
    """

    offset: int
    listed: tuple[TiffField, ...]
    fields: dict[int, TiffField]
    next_at: int
    next_offset: int


def is_tiff(head: bytes) -> bool:
    """Return whether the first bytes of a file are a TIFF or BigTIFF header."""
    return head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def note_directory(offset: int, known_offsets: set[int]) -> None:
    """Add a directory to those seen.

    Raises:
        CorruptFileError: It was seen before, or there are more than ``MAX_DIRECTORIES``.
    """
    if offset in known_offsets:
        raise CorruptFileError("the TIFF directories form a loop")
    if len(known_offsets) >= MAX_DIRECTORIES:
        raise CorruptFileError(f"the TIFF file has more than {MAX_DIRECTORIES:,} directories")
    known_offsets.add(offset)


class TiffReader:
    """Directories and values of an open TIFF file."""

    def __init__(self, fd: int) -> None:
        """Read the header.

        Raises:
            UnsupportedFormatError: No TIFF header.
            CorruptFileError: The header is truncated.
        """
        self.fd = fd
        self.size = os.fstat(fd).st_size
        head = os.pread(fd, 16, 0)
        if not is_tiff(head):
            raise UnsupportedFormatError(
                "not a TIFF file: the first four bytes are not a TIFF header"
            )
        self.order = "<" if head[:2] == b"II" else ">"
        is_big = head[2:4] in (b"+\0", b"\0+")
        if len(head) < (16 if is_big else 8):
            raise CorruptFileError("the TIFF header is truncated: the file ends inside it")
        self.is_ndpi = not is_big and self._has_ndpi_mark()
        self.first_at = 8 if is_big else 4
        self.pointer_code = "Q" if is_big or self.is_ndpi else "I"
        self._count_code, self._field_code = ("Q", "HHQ8s") if is_big else ("H", "HHI4s")
        self._claimed_bytes = 0
        self._read: set[int] = set()

    def chain(self) -> Iterator[Ifd]:
        """Directories of the main chain, in order."""
        offset, known_offsets = self.number(self.pointer_code, self.first_at), set[int]()
        while offset:
            note_directory(offset, known_offsets)
            ifd = self.directory(offset)
            yield ifd
            offset = ifd.next_offset

    def directory(self, offset: int) -> Ifd:
        """Read a directory.

        Raises:
            CorruptFileError: The directory or the value of a field is not inside the file.
            TooLargeError: The values are beyond ``ml.imaging.limits``.
        """
        count = self.number(self._count_code, offset)
        if not 0 < count <= _MAX_FIELDS:
            raise CorruptFileError(f"a TIFF directory claims {count:,} tags")
        entry = struct.Struct(self.order + self._field_code)
        start = offset + struct.calcsize(self._count_code)
        next_at = start + count * entry.size
        following = self.read(next_at, struct.calcsize(self.pointer_code))
        uppers = [0] * count
        if self.is_ndpi:
            uppers = list(struct.unpack(f"<{count}I", self.read(next_at + 8, 4 * count)))
        listed = tuple(
            self._field(start + number * entry.size, upper, stored)
            for number, upper, stored in zip(
                range(1, count + 1),
                uppers,
                entry.iter_unpack(self.read(start, count * entry.size)),
                strict=True,
            )
        )
        if offset not in self._read:
            self._read.add(offset)
            self._claimed_bytes += sum(field.size for field in listed)
        if self._claimed_bytes > MAX_TAGS_BYTES:
            raise TooLargeError(
                f"the TIFF file claims tags of {self._claimed_bytes >> 20:,} MiB in all; "
                f"the limit is {MAX_TAGS_BYTES >> 20:,} MiB"
            )
        fields = {field.tag: field for field in listed}
        return Ifd(offset, listed, fields, next_at, self._unpack(self.pointer_code, following))

    def _field(self, end: int, upper: int, entry: tuple[int, int, int, bytes]) -> TiffField:
        """Parse a field whose entry ends at ``end``."""
        tag, kind, count, inline = entry
        if tag in _LISTS and kind not in OFFSET_TYPES:
            raise CorruptFileError(f"TIFF tag {tag} claims {count:,} values of a type it never has")
        size = count * _BYTES.get(kind, 0)
        if size > MAX_TAG_BYTES:
            raise TooLargeError(
                f"TIFF tag {tag} claims {count:,} values, {size:,} bytes; "
                f"the limit is {MAX_TAG_BYTES:,} bytes"
            )
        if size <= len(inline):
            upper = upper if count == 1 and kind in _LONGS else 0
            return TiffField(tag, kind, count, end - len(inline), size, inline[:size], upper)
        at = upper << 32 | self._unpack("Q" if len(inline) == 8 else "I", inline)
        self.require(at, size, f"the value of TIFF tag {tag}")
        return TiffField(tag, kind, count, at, size)

    def values(self, field: TiffField | None, limit: int | None = None) -> npt.NDArray[np.generic]:
        """At most the first ``limit`` values of a field: (N,), for rationals (2 N,)."""
        if field is None or field.kind not in _DTYPES:
            return np.empty(0, np.uint64)
        size = field.size if limit is None else min(field.size, limit * _BYTES[field.kind])
        data = field.inline[:size] or self.read(field.at, size)
        values = np.frombuffer(data, np.dtype(self.order + _DTYPES[field.kind]))
        return values + (np.uint64(field.upper) << np.uint64(32)) if field.upper else values

    def data(self, field: TiffField) -> bytes:
        """Read the bytes of a field."""
        return self.read(field.at, field.size)

    def number(self, code: str, at: int) -> int:
        """Read a number in the file's byte order, by its ``struct`` code."""
        return self._unpack(code, self.read(at, struct.calcsize(code)))

    def read(self, at: int, size: int) -> bytes:
        """Bytes of the file; raises ``CorruptFileError`` beyond its end."""
        self.require(at, size, "a TIFF directory")
        return os.pread(self.fd, size, at)

    def require(self, at: int, size: int, part: str) -> None:
        """Raise ``CorruptFileError`` if a part is not inside the file."""
        if at + size > self.size:
            raise CorruptFileError(
                f"the TIFF file is truncated or damaged: it ends at byte {self.size:,}, but {part} "
                f"ends at byte {at + size:,}; upload the complete file"
            )

    def _has_ndpi_mark(self) -> bool:
        """Return whether the first directory, at a 64-bit offset, has Hamamatsu's mark."""
        if self.order != "<":
            return False
        try:
            at = self.number("Q", 4)
            entries = self.read(at + 2, 12 * min(self.number("H", at), _MAX_FIELDS))
        except CorruptFileError:
            return False
        return any(tag == _NDPI for (tag,) in struct.iter_unpack("<H10x", entries))

    def _unpack(self, code: str, data: bytes) -> int:
        return int(struct.unpack(self.order + code, data)[0])
