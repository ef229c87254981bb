"""Functional groups of each frame of a DICOM object: read one by one or skipped, never all at once.

A slide of 100,000 tiles may state the position of each one (PerFrameFunctionalGroupsSequence).
Parsed, all of them take many times their size in memory. Other attributes are read within limits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.dicom_items import END, ITEM, ITEM_END_HEAD, ITEM_HEAD, UNDEFINED

if TYPE_CHECKING:
    from pydicom.dataset import Dataset, FileDataset

PER_FRAME = 0x52009230
"""The tag of PerFrameFunctionalGroupsSequence."""
MAX_BYTES = 96 * 2**20
"""Largest size of the other attributes: the two offset tables of four million frames have 64
MiB."""
MAX_PARTS = 500_000  # reads and items of sequences; a slide has some thousand
MAX_GROUP_BYTES = 2**20  # of one frame, usually some hundred
_CHUNK_BYTES = 2**20  # copied at once
_PIXELS = (0x7FE00010, 0x7FE00009, 0x7FE00008)
_TAG = struct.Struct("<HH")
_DAMAGED = "the DICOM object is truncated or damaged"


class _Bounded:
    """File whose reads are limited in bytes and in number of parts."""

    def __init__(self, file: BinaryIO, max_bytes: int = MAX_BYTES) -> None:
        self._file, self._bytes_left, self._parts_left = file, max_bytes, MAX_PARTS
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if size < 0:  # pydicom does so to unpack a whole data set
            raise UnsupportedFormatError(
                "the DICOM object is deflated; expected a little-endian transfer syntax"
            )
        self._bytes_left -= size
        self._parts_left -= 1
        if self.is_spent:
            raise TooLargeError("the DICOM object has more attributes than any slide")
        data = self._file.read(size)
        # a sequence of defined length is parsed only on access: its items count here
        self._parts_left -= data.count(ITEM)
        return data

    @property
    def is_spent(self) -> bool:
        return self._bytes_left < 0 or self._parts_left < 0


def read_head(file: BinaryIO) -> FileDataset:
    """Read the data set up to the functional groups or the pixels, and leave the file there.

    Raises:
        CorruptFileError, UnsupportedFormatError: Not a DICOM object, cut, or deflated.
        TooLargeError: More attributes than any slide has.
    """
    from pydicom.filereader import read_partial

    with _limit_reads(file) as bounded:
        return read_partial(bounded, stop_when=_is_end_of_head)


def has_groups(file: BinaryIO) -> bool:
    """Return whether the functional groups of the frames begin at the file's current position."""
    tag = file.read(_TAG.size)
    file.seek(-len(tag), 1)
    return tag == _TAG.pack(PER_FRAME >> 16, PER_FRAME & 0xFFFF)


def skip_groups(file: BinaryIO, *, is_implicit: bool, frames: int) -> None:
    """Skip the functional groups of ``frames`` frames."""
    length = _length(file, is_implicit)
    if length != UNDEFINED:
        file.seek(length, 1)
        return
    for _ in range(frames + 1):
        at = file.tell()
        tag, size = _item(file)
        if tag == END:
            return
        if size != UNDEFINED:
            file.seek(size, 1)
        else:
            file.seek(at)
            _read_group(file, is_implicit, "iso8859")
    raise _too_many_groups(frames)


def iter_groups(
    file: BinaryIO, *, is_implicit: bool, encoding: str | list[str], frames: int
) -> Iterator[Dataset]:
    """Functional groups of each frame, in order; leaves the file after the last one.

    Args:
        encoding: Encoding of texts, as converted by pydicom.
        frames: Largest number of frames.
    """
    length = _length(file, is_implicit)
    end = None if length == UNDEFINED else file.tell() + length
    count = 0
    while end is None or file.tell() < end:
        at = file.tell()
        tag, size = _item(file)
        if tag == END and end is None:
            return
        count += 1
        if count > frames:
            raise _too_many_groups(frames)
        file.seek(at)
        group = _read_group(file, is_implicit, encoding)
        if size == UNDEFINED:
            file.seek(-ITEM_HEAD.size, 1)
            is_complete = file.read(ITEM_HEAD.size) == ITEM_END_HEAD
        else:
            is_complete = file.tell() == at + ITEM_HEAD.size + size
        if not is_complete:  # pydicom takes the end of the file for the end of the item
            raise CorruptFileError(_DAMAGED)
        yield group
    if file.tell() != end:
        raise CorruptFileError(_DAMAGED)


def read_rest(file: BinaryIO, *, is_implicit: bool, encoding: str | list[str]) -> Dataset:
    """Attributes between the functional groups and the pixels."""
    from pydicom.filereader import read_dataset

    with _limit_reads(file) as bounded:
        dataset = read_dataset(
            bounded, is_implicit, True, stop_when=_is_pixels, parent_encoding=encoding
        )
    if any(tag <= PER_FRAME for tag in dataset.keys()):  # noqa: SIM118 - values stay as stored
        raise CorruptFileError("the DICOM object's attributes are out of order")
    return dataset


def copy_bytes(file: BinaryIO, out: BinaryIO, size: int) -> None:
    """Copy ``size`` bytes between the current positions of both files."""
    while size:
        chunk = file.read(min(size, _CHUNK_BYTES))
        if not chunk:
            raise CorruptFileError("the DICOM object is truncated inside its pixels")
        out.write(chunk)
        size -= len(chunk)


def encoding_of(data: Dataset) -> list[str]:
    """Encoding of a data set's texts, as converted by pydicom."""
    from pydicom.charset import convert_encodings, default_encoding

    return list(convert_encodings(data.get("SpecificCharacterSet") or default_encoding))


@contextmanager
def pydicom_errors_as_corrupt() -> Iterator[None]:
    """Convert pydicom's exceptions on damaged values to ``CorruptFileError``.

    pydicom converts a value on first access, which may be long after reading.
    """
    from pydicom.errors import BytesLengthException, InvalidDicomError

    try:
        yield
    except (
        *(BytesLengthException, InvalidDicomError),
        *(AttributeError, EOFError, IndexError, KeyError, NotImplementedError),
        *(OSError, OverflowError, RecursionError, TypeError, ValueError, struct.error),
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CorruptFileError(_DAMAGED) from error


@contextmanager
def _limit_reads(file: BinaryIO, max_bytes: int = MAX_BYTES) -> Iterator[BinaryIO]:
    """Limit the reads of a file; errors as in ``pydicom_errors_as_corrupt``."""
    bounded = _Bounded(file, max_bytes)
    try:
        with pydicom_errors_as_corrupt():
            yield cast("BinaryIO", bounded)
    except CorruptFileError as error:
        if bounded.is_spent:  # pydicom makes another error of it within a sequence
            raise TooLargeError("the DICOM object has more attributes than any slide") from error
        raise


def _is_pixels(tag: int, vr: str | None, length: int) -> bool:
    return tag in _PIXELS


def _is_end_of_head(tag: int, vr: str | None, length: int) -> bool:
    return tag in _PIXELS or (tag == PER_FRAME and vr in (None, "SQ"))


def _length(file: BinaryIO, is_implicit: bool) -> int:
    head = file.read(8 if is_implicit else 12)
    if len(head) < 8 or (len(head) < 12 and not is_implicit):
        raise CorruptFileError(_DAMAGED)
    return int(struct.unpack("<I", head[-4:])[0])


def _item(file: BinaryIO) -> tuple[bytes, int]:
    head = file.read(ITEM_HEAD.size)
    tag, size = ITEM_HEAD.unpack(head) if len(head) == ITEM_HEAD.size else (b"", 0)
    if tag not in (ITEM, END):
        raise CorruptFileError(_DAMAGED)
    return tag, size


def _read_group(file: BinaryIO, is_implicit: bool, encoding: str | list[str]) -> Dataset:
    from pydicom.filereader import read_sequence_item

    with _limit_reads(file, MAX_GROUP_BYTES) as bounded:
        group = read_sequence_item(bounded, is_implicit, True, encoding)
    if group is None:
        raise CorruptFileError(_DAMAGED)
    return group


def _too_many_groups(frames: int) -> CorruptFileError:
    return CorruptFileError(f"the DICOM object has {frames:,} frames but describes more")
