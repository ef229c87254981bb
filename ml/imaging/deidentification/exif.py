"""EXIF blocks, rewritten with orientation and resolution only."""

from __future__ import annotations

import struct
from fractions import Fraction

from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from ml.imaging.deidentification.result import DeidentificationResult

_GPS = 34853
_MAX_VALUE = {274: 8, 296: 3}
"""Largest orientation and resolution unit, by Exif 3.0; the smallest is 1."""
_RESOLUTIONS = (282, 283)
_MAX_PER_UNIT = 2**20  # per inch, of pixels of 25 nm
_MAX_DENOMINATOR = 2**9  # with _MAX_PER_UNIT, the four bytes of a value cannot spell text


def clean_exif(data: bytes, cleaned: DeidentificationResult) -> bytes:
    """Rewrite a block, from its byte order on, with the allowed tags; b"" if it has none."""
    exif, allowed = Image.Exif(), Image.Exif()
    try:
        exif.load(data)
        for tag, largest in _MAX_VALUE.items():
            value = exif.get(tag)
            if isinstance(value, int) and 1 <= value <= largest:
                allowed[tag] = value
        for tag in _RESOLUTIONS:
            value = exif.get(tag)
            if isinstance(value, IFDRational) and 0 < value <= _MAX_PER_UNIT:
                exact = Fraction(int(value.numerator), value.denominator)
                if short := exact.limit_denominator(_MAX_DENOMINATOR):
                    allowed[tag] = IFDRational(short)
    except (SyntaxError, OSError, ValueError, struct.error):  # a damaged block is removed whole
        allowed.clear()
    allowed.endian = exif.endian
    clean = allowed.tobytes().removeprefix(b"Exif\0\0") if len(allowed) else b""
    if _GPS in exif:
        cleaned.add_removed("GPS position")
    if data.rstrip(b"\0") != clean.rstrip(b"\0"):
        cleaned.add_removed("Exif")
    return clean
