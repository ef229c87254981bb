"""Writing of data sets and frames as files (DICOM PS3.10) and JSON (PS3.18, F)."""

from __future__ import annotations

import hashlib
import io
import logging
import math
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ml.imaging.formats.dicom_items import END_HEAD, ITEM, ITEM_HEAD, UNDEFINED
from ml.imaging.formats.frame_groups import PER_FRAME, encoding_of
from ml.types import JsonObject

if TYPE_CHECKING:
    from pydicom.dataelem import DataElement
    from pydicom.dataset import Dataset

logger = logging.getLogger(__name__)

INLINE_BYTES = 240
"""Largest value in JSON, bytes; of larger ones, such as colour profiles, JSON has the address."""
_PIXELS_OF_UNKNOWN_LENGTH = struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, UNDEFINED)
_DAMAGED = (ValueError, TypeError, AttributeError, ArithmeticError, NotImplementedError)


def head_of(data: Dataset, syntax: str) -> bytes:
    """Preamble, file meta information and data set: a file up to its pixels."""
    from pydicom import dcmwrite
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import UID

    complete, meta = Dataset(), FileMetaDataset()
    complete.update(data)
    meta.MediaStorageSOPClassUID = data.SOPClassUID
    meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    meta.TransferSyntaxUID = UID(syntax)
    complete.file_meta = meta
    out = io.BytesIO()
    dcmwrite(out, complete, enforce_file_format=True)
    return out.getvalue()


def head_parts(data: Dataset, syntax: str) -> tuple[bytes, bytes]:
    """The parts of ``head_of`` before and after the functional groups."""
    from pydicom.dataset import Dataset
    from pydicom.filebase import DicomBytesIO
    from pydicom.filewriter import write_dataset
    from pydicom.uid import UID

    first, after_frames, out = Dataset(), Dataset(), DicomBytesIO()
    for tag in data.keys():  # noqa: SIM118 - values stay as they are stored
        if tag != PER_FRAME:
            (first if tag < PER_FRAME else after_frames)[tag] = data.get_item(tag)
    out.is_little_endian, out.is_implicit_VR = True, UID(syntax).is_implicit_VR
    write_dataset(out, after_frames, encoding_of(data))
    return head_of(first, syntax), out.getvalue()


def add_offsets(data: Dataset, lengths: npt.NDArray[np.int64]) -> None:
    """Add the extended offset table, by which readers find each frame.

    Args:
        lengths: (N,) bytes of each frame before padding.
    """
    padded = lengths + lengths % 2
    starts = np.concatenate([[0], np.cumsum(padded + ITEM_HEAD.size)[:-1]])
    data.ExtendedOffsetTable = starts.astype("<u8").tobytes()
    data.ExtendedOffsetTableLengths = padded.astype("<u8").tobytes()


def coded_pixels(frames: Iterator[bytes]) -> Iterator[bytes]:
    """The element of pixel data of coded frames, an item each."""
    yield _PIXELS_OF_UNKNOWN_LENGTH + ITEM_HEAD.pack(ITEM, 0)  # no table
    for frame in frames:
        padding = b"\0" * (len(frame) % 2)
        yield ITEM_HEAD.pack(ITEM, len(frame) + len(padding)) + frame + padding
    yield END_HEAD


def json_of(data: Dataset, address: Callable[[str], str]) -> JsonObject:
    """A data set in DICOM's JSON model; file meta information is no part of it.

    Args:
        address: gives, for a name that ``bulk_value`` knows, the address of its bytes.
    """
    from pydicom.errors import BytesLengthException

    document: JsonObject = {}
    for tag in data.keys():  # noqa: SIM118 - the values are read one by one, each may be damaged
        try:
            element = data[tag]
            entry = element.to_json_dict(
                bulk_data_element_handler=lambda bulk_element: address(_name_of(bulk_element)),
                bulk_data_threshold=INLINE_BYTES // 3 * 4,  # of base64
            )
            document[f"{tag:08X}"] = _finite(entry)
        except (*_DAMAGED, BytesLengthException) as error:
            logger.warning("dicom: %s is left out of JSON: %s", tag, type(error).__name__)
    return document


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot express by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, dict) else value


def bulk_value(data: Dataset, name: str) -> bytes | None:
    """Value whose address in JSON has this name; None if there is none."""
    for element in data.iterall():
        is_bytes = isinstance(element.value, bytes) and len(element.value) > INLINE_BYTES
        if is_bytes and _name_of(element) == name:
            return bytes(element.value)
    return None


def _name_of(element: DataElement) -> str:
    """Name by content, independent of the position."""
    return hashlib.sha256(element.value).hexdigest()[:32]
