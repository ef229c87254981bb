"""An EXIF block, written anew from what is known of it: orientation and resolution alone."""

from __future__ import annotations

import struct
from fractions import Fraction

from ml.imaging.deidentify.cleaned import Cleaned

_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION, _UNIT, _GPS = 274, 296, 34853
_MOST = {_ORIENTATION: 8, _UNIT: 3}
"""The largest value of each, by Exif 3.0; the smallest is 1."""
_RESOLUTIONS = (282, 283)
_SHORT, _LONG, _RATIONAL = 3, 4, 5
_MOST_PER_UNIT = 2**20  # per inch, of pixels of 25 nm
_MOST_PARTS = 2**9  # of a pixel; with the most above no four bytes of a value are four letters
_ENTRY_BYTES = 12  # of a directory


def clean_exif(data: bytes, cleaned: Cleaned) -> bytes:
    """The block from its byte order on as it may stay; b"" where nothing of it may."""
    order = _ORDERS.get(data[:4], "")
    entries = _first_directory(data, order) if order else {}
    kept: dict[int, Fraction] = {}
    for tag, entry in sorted(entries.items()):
        value = _value(data, order, tag, entry)
        if value is not None:
            kept[tag] = value
    clean = _written(order, kept) if kept else b""
    if _GPS in entries:
        cleaned.took("GPS position")
    if data.rstrip(b"\0") != clean.rstrip(b"\0"):
        cleaned.took("Exif")
    return clean


def _first_directory(data: bytes, order: str) -> dict[int, bytes]:
    """Its entries by tag, as far as they lie in the block."""
    start = int.from_bytes(data[4:8], "little" if order == "<" else "big")
    if len(data) < start + 2:
        return {}
    (count,) = struct.unpack_from(order + "H", data, start)
    places = range(start + 2, start + 2 + _ENTRY_BYTES * count, _ENTRY_BYTES)
    entries = [data[at : at + _ENTRY_BYTES] for at in places if at + _ENTRY_BYTES <= len(data)]
    return {struct.unpack_from(order + "H", entry)[0]: entry for entry in entries}


def _value(data: bytes, order: str, tag: int, entry: bytes) -> Fraction | None:
    """The value of a field that may stay; None for other fields and impossible values."""
    kind, count, at = struct.unpack(order + "HII", entry[2:])
    if count != 1:
        return None
    if tag in _MOST and kind in (_SHORT, _LONG):
        (found,) = struct.unpack_from(order + ("H" if kind == _SHORT else "I"), entry, 8)
        return Fraction(found) if 1 <= found <= _MOST[tag] else None
    if tag in _RESOLUTIONS and kind == _RATIONAL and at + 8 <= len(data):
        above, below = struct.unpack_from(order + "II", data, at)
        if below and 0 < above <= below * _MOST_PER_UNIT:
            return Fraction(above, below).limit_denominator(_MOST_PARTS)
    return None


def _written(order: str, kept: dict[int, Fraction]) -> bytes:
    head = b"II*\0" if order == "<" else b"MM\0*"
    behind = 8 + 2 + _ENTRY_BYTES * len(kept) + 4
    entries, values = struct.pack(order + "IH", 8, len(kept)), b""
    for tag, value in kept.items():
        if tag in _RESOLUTIONS:
            entries += struct.pack(order + "HHII", tag, _RATIONAL, 1, behind + len(values))
            values += struct.pack(order + "II", value.numerator, value.denominator)
        else:
            entries += struct.pack(order + "HHIHH", tag, _SHORT, 1, value.numerator, 0)
    return head + entries + bytes(4) + values
