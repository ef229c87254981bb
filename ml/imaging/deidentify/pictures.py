"""JPEG, PNG and WebP without what cameras and programs wrote beside the pixels.

Coded pixels, colour profile, resolution and orientation stay; the rest is written again without it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, TiffImagePlugin

from ml.errors import CorruptFileError
from ml.imaging.deidentify.cleaned import Cleaned

_READS_EXIF = TiffImagePlugin
"""Loaded now: nothing can be loaded once the child that opens files has shut itself in."""
_EXIF_HEAD = b"Exif\0\0"
_EXIF_KEPT = (274, 282, 283, 296)
"""Orientation, resolution and its unit: how the picture is shown, not whose it is."""
_GPS = 34853
_SOI, _EOI, _SOS, _COM = 0xD8, 0xD9, 0xDA, 0xFE
_APP0, _APP1, _APP2, _APP14, _APP15 = 0xE0, 0xE1, 0xE2, 0xEE, 0xEF
"""Markers of ITU-T T.81, table B.1."""
_PNG_HEAD = 8  # bytes of the signature
_PNG_KEPT = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB"}
    | {b"bKGD", b"pHYs", b"cICP", b"mDCV", b"cLLI", b"acTL", b"fcTL", b"fdAT"}
)
_PNG_TOLD = {b"tEXt": "PNG text", b"zTXt": "PNG text", b"iTXt": "PNG text", b"tIME": "PNG time"}
_WEBP_EXIF, _WEBP_XMP = 0x08, 0x04  # flags of VP8X


def clean_jpeg(source: Path, target: Path, cleaned: Cleaned) -> None:
    """Keep JFIF, ICC profile and Adobe's colour transform; bytes after the end go too."""
    data = source.read_bytes()
    out = bytearray(b"\xff\xd8")
    at = 2
    for marker, start, end in _segments(data):
        at = end
        body = data[start + 4 : end]
        if marker == _APP1 and body.startswith(_EXIF_HEAD):
            kept = _exif(body[len(_EXIF_HEAD) :], cleaned)
            if kept:
                body = _EXIF_HEAD + kept
                out += b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
        elif _is_kept(marker, body):
            out += data[start:end]
        else:
            cleaned.took("JPEG comment" if marker == _COM else _segment_name(body))
    if data[at:].strip(b"\0"):
        cleaned.took("data after the image")
    target.write_bytes(bytes(out))


def blank_notes(path: Path, cleaned: Cleaned) -> None:
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
            if not _is_kept(marker, body) and body.strip(b"\0"):
                cleaned.took("JPEG comment" if marker == _COM else _segment_name(body))
                file.seek(at + 4)
                file.write(bytes(len(body)))
            at += 2 + size


def clean_png(source: Path, target: Path, cleaned: Cleaned) -> None:
    """Keep the chunks that say how the picture looks."""
    data = source.read_bytes()
    out, at = bytearray(data[:_PNG_HEAD]), _PNG_HEAD
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, end = data[at + 4 : at + 8], at + 12 + size
        if end > len(data):
            raise CorruptFileError("the PNG file is truncated")
        if kind in _PNG_KEPT:
            out += data[at:end]
        elif kind == b"eXIf":
            kept = _exif(data[at + 8 : end - 4], cleaned)
            if kept:
                out += struct.pack(">I", len(kept)) + kind + kept
                out += struct.pack(">I", zlib.crc32(kind + kept))
        else:
            cleaned.took(_PNG_TOLD.get(kind, f"PNG chunk {kind.decode('latin-1')}"))
        at = end
        if kind == b"IEND":
            break
    if data[at:].strip(b"\0"):
        cleaned.took("data after the image")
    target.write_bytes(bytes(out))


def clean_webp(source: Path, target: Path, cleaned: Cleaned) -> None:
    """Leave out XMP, and of EXIF all but orientation and resolution."""
    data = source.read_bytes()
    chunks: list[tuple[bytes, bytes]] = []
    at, flags = 12, 0xFF
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8 : at + 8 + size]
        if kind == b"EXIF":
            body = _exif(body.removeprefix(_EXIF_HEAD), cleaned)
            flags &= 0xFF if body else ~_WEBP_EXIF
        if kind == b"XMP ":
            cleaned.took("XMP")
            flags &= ~_WEBP_XMP
        elif body:
            chunks.append((kind, body))
        at += 8 + size + size % 2
    out = b"".join(_riff(kind, _flagged(kind, body, flags)) for kind, body in chunks)
    target.write_bytes(b"RIFF" + struct.pack("<I", len(out) + 4) + b"WEBP" + out)


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
    """Where the next marker stands that is not a restart."""
    while (at := data.find(b"\xff", at)) >= 0 and at + 1 < len(data):
        if data[at + 1] not in (0, 0xFF) and not 0xD0 <= data[at + 1] <= 0xD7:
            return at
        at += 1 if data[at + 1] == 0xFF else 2
    return len(data)


def _is_kept(marker: int, body: bytes) -> bool:
    if marker == _COM:
        return False
    if not _APP0 <= marker <= _APP15:
        return True
    return (
        marker == _APP0
        or (marker == _APP2 and body.startswith(b"ICC_PROFILE\0"))
        or (marker == _APP14 and body.startswith(b"Adobe"))
    )


def _segment_name(body: bytes) -> str:
    known = {b"http://ns.adobe": "XMP", b"Photoshop": "IPTC", b"MPF": "further images"}
    return next((name for start, name in known.items() if body.startswith(start)), "JPEG note")


def _exif(data: bytes, cleaned: Cleaned) -> bytes:
    """An EXIF block with orientation and resolution alone; b"" if that is nothing."""
    found, kept = Image.Exif(), Image.Exif()
    try:
        found.load(_EXIF_HEAD + data)
        present = set(found)
        for tag in _EXIF_KEPT:
            if tag in present:
                kept[tag] = found[tag]
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, struct.error):
        present = {0}
    if _GPS in present:
        cleaned.took("GPS position")
    if present - set(_EXIF_KEPT):
        cleaned.took("Exif")
    elif present:
        return data
    return kept.tobytes().removeprefix(_EXIF_HEAD) if len(kept) else b""


def _riff(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _flagged(kind: bytes, body: bytes, flags: int) -> bytes:
    return bytes([body[0] & flags]) + body[1:] if kind == b"VP8X" else body
