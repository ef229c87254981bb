"""JPEG, PNG and WebP without the metadata of cameras and programs.

Coded pixels, colour profile, resolution and orientation stay; all other metadata is removed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.deidentification.exif import clean_exif
from ml.imaging.deidentification.result import DeidentificationResult

_EXIF_HEAD = b"Exif\0\0"
_SOI, _EOI, _SOS, _COM = 0xD8, 0xD9, 0xDA, 0xFE
_APP0, _APP1, _APP2, _APP14 = 0xE0, 0xE1, 0xE2, 0xEE
_SHOWN = frozenset({*range(0xC0, 0xD0), *range(_EOI, 0xE0)})
"""Markers of ITU-T T.81, table B.1; the last: frames, tables, scans and their ends."""
_JFIF_BYTES, _ADOBE_BYTES = 14, 12  # without a thumbnail: ITU-T T.871, 10.1, and T.872, 6.5.3
_PNG_HEAD = 8  # bytes of the signature
_PNG_CODED = frozenset({b"IDAT", b"fdAT", b"iCCP"})
_MAX_PNG = {b"IHDR": 13, b"PLTE": 768, b"IEND": 0, b"tRNS": 256, b"cHRM": 32, b"gAMA": 4} | {
    b"sBIT": 4, b"sRGB": 1, b"bKGD": 6, b"pHYs": 9, b"cICP": 4, b"mDCV": 24, b"cLLI": 8,
    b"acTL": 8, b"fcTL": 26,
}  # fmt: skip
"""Chunks needed for display, and their largest sizes in bytes: PNG, third edition."""
_PNG_TEXTS = {b"tEXt": "PNG text", b"zTXt": "PNG text", b"iTXt": "PNG text", b"tIME": "PNG time"}
_WEBP_EXIF, _WEBP_XMP = 0x08, 0x04  # flags of VP8X
_WEBP_CODED = frozenset({b"VP8 ", b"VP8L", b"ALPH", b"ICCP"})
_MAX_WEBP = {b"VP8X": 10, b"ANIM": 6}
"""Allowed chunks: of any length, or of at most so many bytes: RFC 9649, 2.7."""
_WEBP_FRAME_BYTES = 16  # of a frame's place and duration, before its own chunks


def clean_jpeg(source: Path, target: Path, cleaned: DeidentificationResult) -> None:
    """Keep JFIF, ICC profile and Adobe's colour transform; bytes after the end are removed."""
    data = source.read_bytes()
    out = bytearray(b"\xff\xd8")
    at = 2
    for marker, start, end in _segments(data):
        at = end
        body = data[start + 4 : end]
        if marker == _APP1 and body.startswith(_EXIF_HEAD):
            allowed = clean_exif(body[len(_EXIF_HEAD) :], cleaned)
            allowed = _EXIF_HEAD + allowed if allowed else b""
        elif marker in _SHOWN:
            out += data[start:end]
            continue
        else:
            allowed = _allowed_part(marker, body, cleaned)
        if allowed:
            out += bytes([0xFF, marker]) + struct.pack(">H", len(allowed) + 2) + allowed
    if data[at:].strip(b"\0"):
        cleaned.add_removed("data after the image")
    target.write_bytes(bytes(out))


def blank_notes(path: Path, cleaned: DeidentificationResult) -> None:
    """Overwrite a JPEG's comments and notes before its pixels in place: no byte moves.

    Raises:
        CorruptFileError: no JPEG, or cut before its pixels.
    """
    with path.open("r+b") as file:
        at, marker = 0, _SOI
        while marker != _SOS:
            file.seek(at)
            head = file.read(4)
            if len(head) < 4 or head[0] != 0xFF:
                raise CorruptFileError("a JPEG file of the slide is damaged or cut")
            marker = head[1]
            if marker in (_SOI, 0xFF):  # a start, or a fill byte
                at += 2 if marker == _SOI else 1
                continue
            (size,) = struct.unpack(">H", head[2:])
            body = file.read(max(0, size - 2))
            if marker not in _SHOWN:
                file.seek(at + 4)
                file.write(_allowed_part(marker, body, cleaned).ljust(len(body), b"\0"))
            at += 2 + size


def clean_png(source: Path, target: Path, cleaned: DeidentificationResult) -> None:
    """Keep the chunks needed for display."""
    data = source.read_bytes()
    out, at = bytearray(data[:_PNG_HEAD]), _PNG_HEAD
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, end = data[at + 4 : at + 8], at + 12 + size
        if end > len(data):
            raise CorruptFileError("the PNG file is truncated")
        if kind in _PNG_CODED or size <= _MAX_PNG.get(kind, -1):
            out += data[at:end]
        elif kind == b"eXIf":
            allowed = clean_exif(data[at + 8 : end - 4], cleaned)
            if allowed:
                out += struct.pack(">I", len(allowed)) + kind + allowed
                out += struct.pack(">I", zlib.crc32(kind + allowed))
        else:
            value = data[at + 8 : end - 4].partition(b"\0")[2] if kind == b"tEXt" else b""
            cleaned.add_removed(_PNG_TEXTS.get(kind) or _chunk_name("PNG", kind), value)
        at = end
        if kind == b"IEND":
            break
    if data[at:].strip(b"\0"):
        cleaned.add_removed("data after the image")
    target.write_bytes(bytes(out))


def clean_webp(source: Path, target: Path, cleaned: DeidentificationResult) -> None:
    """Keep the chunks needed for display, in an animation those of each frame."""
    data = source.read_bytes()
    end = 8 + int(struct.unpack_from("<I", data, 4)[0])
    chunks = list[tuple[bytes, bytes]]()
    for kind, body in _chunks(data[12:end]):
        if kind == b"ANMF":
            inner = _display_chunks(_chunks(body[_WEBP_FRAME_BYTES:]), cleaned)
            framed = body[:_WEBP_FRAME_BYTES] + b"".join(_riff(*chunk) for chunk in inner)
            chunks.append((kind, framed))
        else:
            chunks += _display_chunks([(kind, body)], cleaned)
    if data[end:].strip(b"\0"):
        cleaned.add_removed("data after the image")
    absent = _WEBP_XMP | (0 if b"EXIF" in dict(chunks) else _WEBP_EXIF)
    out = b"".join(_riff(kind, _set_flags(kind, body, ~absent)) for kind, body in chunks)
    target.write_bytes(b"RIFF" + struct.pack("<I", len(out) + 4) + b"WEBP" + out)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of the chunks in a range of a WebP file."""
    at = 0
    while at < len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + size > len(data):
            raise CorruptFileError("the WebP file is truncated or damaged")
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _display_chunks(
    chunks: Iterable[tuple[bytes, bytes]], cleaned: DeidentificationResult
) -> Iterator[tuple[bytes, bytes]]:
    """Chunks of a WebP file needed for display; removed ones are recorded."""
    for kind, body in chunks:
        if kind == b"EXIF":
            if allowed := clean_exif(body.removeprefix(_EXIF_HEAD), cleaned):
                yield kind, allowed
        elif kind in _WEBP_CODED or len(body) <= _MAX_WEBP.get(kind, -1):
            yield kind, body
        else:
            cleaned.add_removed("XMP" if kind == b"XMP " else _chunk_name("WebP", kind))


def _chunk_name(format_name: str, kind: bytes) -> str:
    """Name of a chunk in the list of removed fields; the chunk's type only if the format defines
    it."""
    word = kind.strip()
    return f"{format_name} chunk {word.decode()}" if word.isalnum() else f"{format_name} chunk"


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(marker, start, end) from the start of image to its end; coded data belong to their scan."""
    at = 2
    while True:
        if at + 2 > len(data) or data[at] != 0xFF:
            raise CorruptFileError("the JPEG file is damaged or cut: a marker is missing")
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker == _EOI:
            yield marker, at, at + 2
            return
        if at + 4 > len(data):
            raise CorruptFileError("the JPEG file is truncated")
        end = at + 2 + int(struct.unpack_from(">H", data, at + 2)[0])
        if marker == _SOS:
            end = _end_of_scan(data, end)
        if end > len(data):
            raise CorruptFileError("the JPEG file is truncated")
        yield marker, at, end
        if end == len(data):  # without an end of image, as some cameras write it
            return
        at = end


def _end_of_scan(data: bytes, at: int) -> int:
    """Offset of the next marker other than a restart."""
    while (at := data.find(b"\xff", at)) >= 0 and at + 1 < len(data):
        if data[at + 1] not in (0, 0xFF) and not 0xD0 <= data[at + 1] <= 0xD7:
            return at
        at += 1 if data[at + 1] == 0xFF else 2
    return len(data)


def _allowed_part(marker: int, body: bytes, cleaned: DeidentificationResult) -> bytes:
    """Part of a non-coding segment to keep; the rest is recorded as removed."""
    if marker == _APP0 and body.startswith(b"JFIF\0") and len(body) >= _JFIF_BYTES:
        allowed = body[: _JFIF_BYTES - 2] + b"\0\0"  # no pixels of a thumbnail
        if body.rstrip(b"\0") != allowed.rstrip(b"\0"):
            cleaned.add_removed("thumbnail")
        return allowed
    if marker == _APP2 and body.startswith(b"ICC_PROFILE\0"):
        return body
    allowed = body[:_ADOBE_BYTES] if marker == _APP14 and body.startswith(b"Adobe") else b""
    if body[len(allowed) :].strip(b"\0"):
        is_comment = marker == _COM
        name = "JPEG comment" if is_comment else _segment_name(body)
        cleaned.add_removed(name, body if is_comment else b"")
    return allowed


def _segment_name(body: bytes) -> str:
    formats = {b"http://ns.adobe": "XMP", b"Photoshop": "IPTC", b"MPF": "further images"}
    return next((name for start, name in formats.items() if body.startswith(start)), "JPEG note")


def _riff(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _set_flags(kind: bytes, body: bytes, flags: int) -> bytes:
    return bytes(byte & flags for byte in body[:1]) + body[1:] if kind == b"VP8X" else body
