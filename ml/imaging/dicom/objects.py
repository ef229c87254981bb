"""A DICOM slide object on disk: its data set, and its frames found by offset.

Only the data set before the pixels is read, without the functional groups of each frame. Frames are
located by the object's own offset tables, or, if it has none, by the length of each frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.dicom_items import END_HEAD, ITEM, ITEM_HEAD, fragment_bytes
from ml.imaging.formats.frame_groups import (
    encoding_of,
    has_groups,
    iter_groups,
    read_head,
    read_rest,
    skip_groups,
)
from ml.imaging.limits import MAX_TILE_BYTES

if TYPE_CHECKING:
    from pydicom.dataset import Dataset
    from pydicom.uid import UID

MAX_FRAMES = 4_000_000  # tiles of 256 px of the largest accepted slide
_CHUNK_BYTES = 2**20  # copied at once
_BEYOND = "the DICOM object is truncated: some of its frames lie beyond its end"


class FrameOutsideError(BadInputError):
    """The object has no frame of that number."""

    code = "frame-outside"


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions of frames in the file, (N,) int64; coded frames include the heads of their items.

    ``stop``: end of the last frame.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    stop: int


class StoredObject:
    """A stored DICOM object; thread-safe, no file stays open.

    Attributes:
        data: the data set without pixels and functional groups of frames.
        syntax: the UID of the transfer syntax.
        frame_count: stated number of frames.

    Raises:
        CorruptFileError, UnsupportedFormatError: no DICOM object, cut before its pixels, or packed.
        TooLargeError: more attributes than any slide has.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.data: Dataset = read_head(file)
            syntax = self._read_kind()
            self._groups_at = self._at = file.tell()
            if has_groups(file):
                skip_groups(file, is_implicit=self._is_implicit, frames=self.frame_count)
                self._groups_end = file.tell()
                self.data.update(
                    read_rest(file, is_implicit=self._is_implicit, encoding=encoding_of(self.data))
                )
                self._at = file.tell()
            else:
                self._groups_end = self._groups_at
        self.syntax = str(syntax)
        self.is_coded = bool(syntax.is_encapsulated)
        self._head_bytes = 8 if self._is_implicit else 12

    def _read_kind(self) -> UID:
        """Read the transfer syntax and the stated number of frames."""
        from pydicom.uid import UID

        try:
            syntax = UID(self.data.file_meta.TransferSyntaxUID)
            self.frame_count = int(self.data.get("NumberOfFrames") or 1)
            self._is_implicit = bool(syntax.is_implicit_VR)
        except (AttributeError, TypeError, ValueError) as error:
            raise CorruptFileError("the DICOM object is truncated or damaged") from error
        if not 0 < self.frame_count <= MAX_FRAMES:
            raise CorruptFileError(f"the DICOM object says it has {self.frame_count} frames")
        if not syntax.is_little_endian:
            raise UnsupportedFormatError("the DICOM object is big-endian")
        return syntax

    @property
    def has_groups(self) -> bool:
        """Return whether it has functional groups of each frame."""
        return self._groups_end > self._groups_at

    def groups(self) -> Iterator[Dataset]:
        """Functional groups of each frame, in order."""
        with self.path.open("rb") as file:
            file.seek(self._groups_at)
            yield from iter_groups(
                file,
                is_implicit=self._is_implicit,
                encoding=encoding_of(self.data),
                frames=self.frame_count,
            )

    def group_pieces(self) -> Iterator[bytes]:
        """Bytes of the element of functional groups, including its tag, in pieces."""
        return self._pieces(self._groups_at, self._groups_end)

    def is_deidentified(self) -> bool:
        """Return whether it states that identifying data were removed."""
        return str(self.data.get("PatientIdentityRemoved", "")) == "YES"

    def is_of_tissue(self) -> bool:
        """Return whether it is neither a label nor an overview, which may show a name."""
        return not {"LABEL", "OVERVIEW"} & set(self.data.get("ImageType") or ())

    def frame(self, index: int) -> bytes:
        """Read the stored bytes of a frame, without the heads of its items.

        Args:
            index: from 0.
        Raises:
            FrameOutsideError: there is none.
            CorruptFileError: it is not where it should be.
        """
        places = self._places
        if not 0 <= index < len(places.starts):
            raise FrameOutsideError(f"no frame {index + 1}: the object has {len(places.starts)}")
        start, end = int(places.starts[index]), int(places.ends[index])
        if not 0 <= end - start <= MAX_TILE_BYTES:
            raise CorruptFileError(f"frame {index + 1} of the DICOM object has {end - start} bytes")
        with self.path.open("rb") as file:
            item = os.pread(file.fileno(), end - start, start)
        if len(item) != end - start:
            raise CorruptFileError(f"the DICOM object is truncated: frame {index + 1} is missing")
        return _item_contents(item) if self.is_coded else item

    def pixel_pieces(self) -> Iterator[bytes]:
        """Bytes of the element of pixel data, including its tag, in pieces."""
        return self._pieces(self._at, self._at + self.pixel_bytes())

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        remaining = stop - start
        with self.path.open("rb") as file:
            file.seek(start)
            while remaining and (chunk := file.read(min(remaining, _CHUNK_BYTES))):
                remaining -= len(chunk)
                yield chunk
        if remaining:
            raise CorruptFileError("the DICOM object is truncated inside its pixels")

    def pixel_bytes(self) -> int:
        """Size of the pixel data element, the content of ``pixel_pieces``."""
        return self._places.stop + (len(END_HEAD) if self.is_coded else 0) - self._at

    @cached_property
    def _places(self) -> _Places:
        with self.path.open("rb") as file:
            fd, size = file.fileno(), os.fstat(file.fileno()).st_size
            if not self.is_coded:
                return self._plain(size)
            table, first = _offset_table(fd, self._at + self._head_bytes)
            places = self._places_by_extended_table(fd, first, size) or self._places_by_table(
                fd, first, table
            )
            if places is None:
                places = self._places_by_walking(fd, first)
        inside = (places.starts >= first) & (places.ends <= size) & (places.starts <= places.ends)
        if not bool(np.all(inside)):
            raise CorruptFileError(_BEYOND)
        return places

    def _plain(self, size: int) -> _Places:
        """Frames one after the other, all of one length."""
        data = self.data
        bits = int(data.Rows) * int(data.Columns) * int(data.SamplesPerPixel)
        length = bits * int(data.BitsAllocated) // 8
        start = self._at + self._head_bytes
        starts = start + np.arange(self.frame_count, dtype=np.int64) * length
        total = length * self.frame_count
        if start + total > size:
            raise CorruptFileError("the DICOM object is truncated inside its pixels")
        return _Places(starts, starts + length, start + total + total % 2)

    def _places_by_extended_table(self, fd: int, first: int, size: int) -> _Places | None:
        offsets = self.data.get("ExtendedOffsetTable")
        lengths = self.data.get("ExtendedOffsetTableLengths")
        for table in (offsets, lengths):
            if not isinstance(table, bytes) or len(table) != 8 * self.frame_count:
                return None
        tables = np.frombuffer(offsets, "<u8"), np.frombuffer(lengths, "<u8")
        if any(
            table.max() > size for table in tables
        ):  # before conversion: values beyond 2^63 would become negative
            raise CorruptFileError(_BEYOND)
        starts, sizes = tables[0].astype(np.int64) + first, tables[1].astype(np.int64)
        return _Places(starts, starts + ITEM_HEAD.size + sizes, _end_from(fd, int(starts[-1])))

    def _places_by_table(self, fd: int, first: int, table: bytes) -> _Places | None:
        """Positions by the basic offset table; None without one, or if it overflowed 4 GiB."""
        offsets = np.frombuffer(table, "<u4").astype(np.int64)
        if len(offsets) != self.frame_count or bool(np.any(np.diff(offsets) <= 0)):
            return None
        starts = offsets + first
        stop = _end_from(fd, int(starts[-1]))
        return _Places(starts, np.append(starts[1:], stop), stop)

    def _places_by_walking(self, fd: int, first: int) -> _Places:
        items = list(_items(fd, first))
        starts = np.array([start for start, _ in items], np.int64)
        ends = np.array([end for _, end in items], np.int64)
        if self.frame_count == 1 and len(items) > 1:
            starts, ends = starts[:1], ends[-1:]
        if len(starts) != self.frame_count:
            raise CorruptFileError(
                f"the DICOM object says it has {self.frame_count:,} frames but holds {len(items):,}"
            )
        return _Places(starts, ends, int(ends[-1]))


def _offset_table(fd: int, at: int) -> tuple[bytes, int]:
    """Return the basic offset table, which may be empty, and the offset of the item after it."""
    head = os.pread(fd, ITEM_HEAD.size, at)
    tag, length = ITEM_HEAD.unpack(head) if len(head) == ITEM_HEAD.size else (b"", 0)
    if tag != ITEM or length > 4 * MAX_FRAMES:
        raise CorruptFileError("the DICOM object's pixels have no offset table")
    at += ITEM_HEAD.size
    return os.pread(fd, length - length % 4, at), at + length


def _items(fd: int, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each item, heads included, up to the end of the pixels."""
    while True:
        head = os.pread(fd, ITEM_HEAD.size, at)
        length = fragment_bytes(head, damage="the DICOM object's pixels are cut or damaged")
        if length is None:
            return
        end = at + ITEM_HEAD.size + length
        yield at, end
        at = end


def _end_from(fd: int, at: int) -> int:
    """End of the last item, walking from one near the end."""
    return max((end for _, end in _items(fd, at)), default=at)


def _item_contents(items: bytes) -> bytes:
    """Content of one or several items."""
    parts, at = [], 0
    while at + ITEM_HEAD.size <= len(items):
        tag, length = ITEM_HEAD.unpack_from(items, at)
        at += ITEM_HEAD.size
        if tag != ITEM or at + length > len(items):
            raise CorruptFileError("a frame of the DICOM object is damaged")
        parts.append(items[at : at + length])
        at += length
    return b"".join(parts)
