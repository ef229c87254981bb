"""A TIFF file open for overwriting fields and stored tiles in place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.deidentification.overwrite import write_at, zero
from ml.imaging.formats.tiff_fields import (
    ASCII,
    MAX_DIRECTORIES,
    OFFSET_TYPES,
    SUB_IFDS,
    Ifd,
    TiffField,
    TiffReader,
)

GPS = 34853
_POINTERS = (SUB_IFDS, 34665, GPS, 40965)
"""Tags whose values are offsets of directories: SubIFDs, Exif, GPS, Interoperability."""
_BYTE = 1


class WritableTiff(TiffReader):
    """A TIFF file open for overwriting; it never grows. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        super().__init__(self._file.fileno())

    def __enter__(self) -> WritableTiff:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def inner(self, outer: Ifd) -> Iterator[tuple[int, Ifd]]:
        """Directories that a directory's fields point to, recursively, with the tag of the pointer.

        The pointers of a directory are read before it is yielded: the caller may overwrite it.
        """
        pending, visited = self._pointers(0, outer), set[tuple[bool, int]]()
        while pending:
            tag, offset = pending.pop()
            if not offset or (tag == GPS, offset) in visited:
                continue
            visited.add((tag == GPS, offset))
            if len(visited) > MAX_DIRECTORIES:
                raise CorruptFileError("a TIFF directory leads to more others than any image has")
            ifd = self.directory(offset)
            pending += self._pointers(tag, ifd)
            yield tag, ifd

    def _pointers(self, tag: int, ifd: Ifd) -> list[tuple[int, int]]:
        """(tag, offset) of each directory that a directory points to.

        Args:
            tag: Tag of the pointer to this directory, 0 in the main chain.
        """
        pointers = list[tuple[int, int]]()
        if tag and ifd.next_offset < self.size:  # readers cannot access anything beyond it
            pointers.append((tag, ifd.next_offset))
        for field in ifd.listed:
            if field.tag in _POINTERS and field.kind in (_BYTE, *OFFSET_TYPES):
                if field.count > MAX_DIRECTORIES:
                    raise CorruptFileError(f"TIFF tag {field.tag} leads to {field.count:,} places")
                pointers += [(field.tag, int(at)) for at in self.numbers(field)]
        return pointers

    def numbers(self, field: TiffField | None) -> list[float]:
        """Values of a field; [] without one."""
        return list(self.values(field).tolist())

    def text(self, field: TiffField | None) -> str:
        """The text of a field, "" without one."""
        return self.data(field).rstrip(b"\0").decode("latin-1") if field else ""

    def blank(self, at: int, size: int) -> None:
        """Overwrite a range of the file with zeros."""
        self.require(at, size, "a stored tile")
        zero(self._file, at, at + size)

    def blank_text(self, field: TiffField | None) -> None:
        """Overwrite a text with spaces, the bytes of another field with zeros."""
        if field is not None and field.size and field.kind == ASCII:
            self.rewrite(field, b" " * (field.size - 1) + b"\0")
        elif field is not None:
            self.blank(field.at, field.size)

    def rewrite(self, field: TiffField, data: bytes) -> None:
        """Overwrite the bytes of a field with as many others."""
        if len(data) != field.size:
            raise ValueError(f"a field of {field.size} bytes was cleaned to {len(data)}")
        write_at(self._file, field.at, data)

    def write_tile(self, at: int, data: bytes) -> None:
        """Overwrite the start of a stored tile."""
        self.require(at, len(data), "a stored tile")
        write_at(self._file, at, data)

    def point(self, pointer_at: int, offset: int) -> None:
        """Set a pointer to the offset of another directory, or to 0 for none."""
        write_at(self._file, pointer_at, struct.pack(self.order + self.pointer_code, offset))
