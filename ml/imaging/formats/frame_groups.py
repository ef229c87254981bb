"""What a DICOM object says of each of its frames: read one by one or passed over, never at once.

A slide of 100,000 tiles may say of each where it lies (PerFrameFunctionalGroupsSequence).
Parsed, all of it takes many times its bytes in memory. What lies around it is read within bounds.
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
MOST_BYTES = 96 * 2**20
"""Of the attributes around it: the two offset tables of four million frames have 64 MiB."""
MOST_PARTS = 500_000  # reads and items of sequences; a slide has some thousand
MOST_GROUP_BYTES = 2**20  # of one frame, usually some hundred
_CHUNK_BYTES = 2**20  # copied at once
_PIXELS = (0x7FE00010, 0x7FE00009, 0x7FE00008)
_TAG = struct.Struct("<HH")
_DAMAGED = "the DICOM object is truncated or damaged"


class _Bounded:
    """A file that is read up to a number of bytes and of parts."""

    def __init__(self, file: BinaryIO, most_bytes: int = MOST_BYTES) -> None:
        self._file, self._bytes_left, self._parts_left = file, most_bytes, MOST_PARTS
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
        found = self._file.read(size)
        # a sequence of a stated length is parsed only when it is asked for: its items count here
        self._parts_left -= found.count(ITEM)
        return found

    @property
    def is_spent(self) -> bool:
        return self._bytes_left < 0 or self._parts_left < 0


def read_head(file: BinaryIO) -> FileDataset:
    """The data set up to what it says of each frame, or to its pixels; the file stands there then.

    Raises:
        CorruptFileError, UnsupportedFormatError: no DICOM object, cut, or deflated as a whole.
        TooLargeError: more attributes than any slide has.
    """
    from pydicom.filereader import read_partial

    with _bounded(file) as bounded:
        return read_partial(bounded, stop_when=_is_end_of_head)


def has_groups(file: BinaryIO) -> bool:
    """Whether what is said about each frame begins here."""
    tag = file.read(_TAG.size)
    file.seek(-len(tag), 1)
    return tag == _TAG.pack(PER_FRAME >> 16, PER_FRAME & 0xFFFF)


def pass_over(file: BinaryIO, *, is_implicit: bool, frames: int) -> None:
    """Go behind what is said about ``frames`` frames, without keeping any of it."""
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
            _group(file, is_implicit, "iso8859")
    raise _too_many(frames)


def each_group(
    file: BinaryIO, *, is_implicit: bool, encoding: str | list[str], frames: int
) -> Iterator[Dataset]:
    """What is said about each frame, one after the other; the file stands behind the last then.

    Args:
        encoding: of texts, as pydicom converts it.
        frames: how many there may be.
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
            raise _too_many(frames)
        file.seek(at)
        found = _group(file, is_implicit, encoding)
        if size == UNDEFINED:
            file.seek(-ITEM_HEAD.size, 1)
            is_whole = file.read(ITEM_HEAD.size) == ITEM_END_HEAD
        else:
            is_whole = file.tell() == at + ITEM_HEAD.size + size
        if not is_whole:  # pydicom takes the end of the file for the end of the item
            raise CorruptFileError(_DAMAGED)
        yield found
    if file.tell() != end:
        raise CorruptFileError(_DAMAGED)


def read_rest(file: BinaryIO, *, is_implicit: bool, encoding: str | list[str]) -> Dataset:
    """The attributes between what is said about each frame and the pixels."""
    from pydicom.filereader import read_dataset

    with _bounded(file) as bounded:
        rest = read_dataset(
            bounded, is_implicit, True, stop_when=_is_pixels, parent_encoding=encoding
        )
    if any(tag <= PER_FRAME for tag in rest.keys()):  # noqa: SIM118 - values stay as stored
        raise CorruptFileError("the DICOM object's attributes are out of order")
    return rest


def copy_bytes(file: BinaryIO, out: BinaryIO, size: int) -> None:
    """This many bytes from where both stand."""
    while size:
        chunk = file.read(min(size, _CHUNK_BYTES))
        if not chunk:
            raise CorruptFileError("the DICOM object is truncated inside its pixels")
        out.write(chunk)
        size -= len(chunk)


def encoding_of(data: Dataset) -> list[str]:
    """Of a data set's texts, as pydicom converts it."""
    from pydicom.charset import convert_encodings, default_encoding

    return list(convert_encodings(data.get("SpecificCharacterSet") or default_encoding))


@contextmanager
def damage_named() -> Iterator[None]:
    """What pydicom raises for damaged values becomes a ``CorruptFileError``.

    It converts a value when that is first asked for, which may be long after reading.
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
def _bounded(file: BinaryIO, most_bytes: int = MOST_BYTES) -> Iterator[BinaryIO]:
    """A file that is read within bounds; errors as ``damage_named`` has them."""
    bounded = _Bounded(file, most_bytes)
    try:
        with damage_named():
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


def _group(file: BinaryIO, is_implicit: bool, encoding: str | list[str]) -> Dataset:
    from pydicom.filereader import read_sequence_item

    with _bounded(file, MOST_GROUP_BYTES) as bounded:
        found = read_sequence_item(bounded, is_implicit, True, encoding)
    if found is None:
        raise CorruptFileError(_DAMAGED)
    return found


def _too_many(frames: int) -> CorruptFileError:
    return CorruptFileError(f"the DICOM object has {frames:,} frames but describes more")
