"""JPEG bytes: parsing of a stored tile, the header that makes it a complete file, encoding.

A TIFF keeps the tables shared by all its JPEG tiles in one tag, the colour meaning and the ICC
profile in others. A browser needs them inside the stream. They are inserted before the tile's own
segments, so that a tile is served as one precomputed header and the stored bytes after its two-byte
start marker.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ml.errors import CorruptFileError
from ml.types import ImageU8

MEDIA_TYPE = "image/jpeg"
TILE_QUALITY = 88
"""Quality of tiles that had to be decoded: visually lossless at about 1.5 bits a pixel."""

_SOI, _EOI = b"\xff\xd8", b"\xff\xd9"
_SOS, _ICC_MARK = 0xDA, b"ICC_PROFILE\0"
_ICC_CHUNK_BYTES = 65_519  # 65,533 of a segment less the 14 of "ICC_PROFILE\0", number, count


@dataclass(frozen=True, slots=True)
class JpegFrame:
    """The coded frame of a JPEG stream.

    Attributes:
        coding: The start-of-frame marker's low byte (0xC0 baseline, 0xC2 progressive, ...).
        has_jfif: The stream has a JFIF APP0 segment (which makes it YCbCr).
        adobe_transform: Colour transform of an Adobe APP14 segment, None without one.
    """

    width_px: int
    height_px: int
    precision: int
    components: int
    coding: int
    has_jfif: bool
    adobe_transform: int | None


def read_frame_header(data: bytes) -> JpegFrame:
    """Read the frame header of a JPEG stream.

    Raises:
        CorruptFileError: no start marker, or the stream ends before a frame header.
    """
    if data[:2] != _SOI:
        raise CorruptFileError("a stored tile is not JPEG although the file says so")
    position, jfif, adobe = 2, False, None
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        body = data[position + 4 : position + 2 + length]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC) and len(body) >= 6:
            height, width = (int.from_bytes(body[i : i + 2], "big") for i in (1, 3))
            return JpegFrame(width, height, body[0], body[5], marker, jfif, adobe)
        jfif = jfif or (marker == 0xE0 and body[:5] == b"JFIF\0")
        if marker == 0xEE and body[:5] == b"Adobe" and len(body) >= 12:
            adobe = body[11]
        position += 2 + length
    raise CorruptFileError("a stored JPEG tile ends before its frame header")


def standalone_header(
    tables: bytes, *, adobe_transform: int | None, icc_profile: bytes | None
) -> bytes:
    """Header that replaces a stored tile's start marker.

    Args:
        tables: content of the TIFF tag JPEGTables, or empty.
        adobe_transform: 0 for samples stored as RGB, 1 for YCbCr, None for no APP14 segment.
        icc_profile: split over APP2 segments as the ICC specification says.
    """
    parts = [_SOI]
    if adobe_transform is not None:
        parts.append(b"\xff\xee\x00\x0eAdobe\x00\x64\0\0\0\0" + bytes([adobe_transform]))
    parts.extend(_icc_segments(icc_profile or b""))
    if tables:
        start = 2 if tables[:2] == _SOI else 0
        end = len(tables) - 2 if tables[-2:] == _EOI else len(tables)
        parts.append(tables[start:end])
    return b"".join(parts)


def _icc_segments(profile: bytes) -> list[bytes]:
    chunks = [profile[i : i + _ICC_CHUNK_BYTES] for i in range(0, len(profile), _ICC_CHUNK_BYTES)]
    if len(chunks) > 255:
        return []
    return [
        b"\xff\xe2"
        + (len(chunk) + 16).to_bytes(2, "big")
        + _ICC_MARK
        + bytes([number, len(chunks)])
        + chunk
        for number, chunk in enumerate(chunks, start=1)
    ]


def encode_jpeg(
    rgb: ImageU8,
    *,
    quality: int = TILE_QUALITY,
    icc_profile: bytes | None = None,
    as_rgb: bool = False,
) -> bytes:
    """Encode (H, W, 3) uint8 RGB, with the ICC profile where there is one.

    Args:
        as_rgb: store samples as RGB, as an Adobe segment then says; else as YCbCr.
    """
    out = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(rgb))
    image.save(
        out,
        "JPEG",
        quality=quality,
        subsampling="4:4:4" if as_rgb else "4:2:0",
        icc_profile=icc_profile,
        keep_rgb=as_rgb,
    )
    return out.getvalue()


def without_profile(data: bytes) -> bytes:
    """Remove the ICC profile of a JPEG, which every tile would repeat.

    Raises:
        CorruptFileError: no start marker.
    """
    if data[:2] != _SOI:
        raise CorruptFileError("a tile is not JPEG")
    parts, start, position = [], 0, 2
    while position + 4 <= len(data) and data[position] == 0xFF and data[position + 1] != _SOS:
        if data[position + 1] == 0xFF:  # a fill byte
            position += 1
            continue
        end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        if data[position + 1] == 0xE2 and data[position + 4 : position + 16] == _ICC_MARK:
            parts.append(data[start:position])
            start = end
        position = end
    return data if not parts else b"".join([*parts, data[start:]])
