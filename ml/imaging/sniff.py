"""What a file is, by its bytes. A name or a browser's content type is never believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import openslide

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.tiff import is_tiff, read_directories

FileKind = Literal["slide", "still", "video"]
ACCEPTED = (
    "a whole-slide image (SVS, NDPI, MRXS, SCN, BIF, CZI, tiled TIFF, DICOM), "
    "an image (JPEG, PNG, TIFF, WebP, BMP) or a video (MP4, MOV, WebM, MKV, AVI, WMV, MPEG)"
)
_STILLS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")
_VIDEOS = (
    (b"\x1a\x45\xdf\xa3", "Matroska or WebM"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "ASF/WMV"),
    (b"\x00\x00\x01\xba", "MPEG program stream"),
    (b"\x00\x00\x01\xb3", "MPEG video"),
    (b"FLV\x01", "Flash video"),
    (b"OggS", "Ogg"),
    (b"\x06\x0e\x2b\x34", "MXF"),
)
_NAMED = (
    (b"PK\x03\x04", "a ZIP archive; unpack it and upload the slides and videos in it one by one"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive; unpack it and upload the slides and videos in it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it and upload the slides and videos in it"),
    (b"Rar!", "a RAR archive; unpack it and upload the slides and videos in it"),
    (b"BZh", "a bzip2 archive; unpack it and upload the slides and videos in it"),
    (b"\xfd7zXZ", "an xz archive; unpack it and upload the slides and videos in it"),
    (b"%PDF", "a PDF document"),
    (b"GIF8", "a GIF image; save it as PNG"),
    (b"ID3", "an audio file"),
    (b"fLaC", "an audio file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\xd0\xcf\x11\xe0", "an Office document"),
)
_ISO_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_ISO_IMAGE_BRANDS = (b"heic", b"heix", b"heif", b"mif1", b"msf1", b"avif", b"avis")


def sniff(path: str | Path) -> FileKind:
    """Say whether a file is a slide, a still or a video.

    Returns:
        "slide" for what OpenSlide opens and tiled TIFFs, "still" for a flat image, or "video".
    Raises:
        UnsupportedFormatError: none of them; the message names what was found and what is accepted.
        CorruptFileError: a TIFF whose directory is damaged or cut.
    """
    path = Path(path)
    with path.open("rb") as file:
        head = file.read(400)
    if not head:
        raise UnsupportedFormatError(f"the file is empty (0 bytes); expected {ACCEPTED}")
    if slide_vendor(path) is not None:
        return "slide"
    if is_tiff(head):
        first = read_directories(path, limit=1)[0]
        if first.width_px < 1 or first.height_px < 1:
            raise CorruptFileError("the TIFF file's first image has no width or height")
        return "slide" if first.is_tiled else "still"
    if head.startswith(_STILLS) or _is_webp(head) or _is_bmp(head, path):
        return "still"
    if _is_video(head):
        return "video"
    raise UnsupportedFormatError(f"the file is {_describe(head)}; expected {ACCEPTED}")


def slide_vendor(path: str | Path) -> str | None:
    """The format's name by OpenSlide ("aperio", "generic-tiff", ...), None where it has none."""
    try:
        return openslide.OpenSlide.detect_format(os.fspath(path))
    except openslide.OpenSlideError:
        return None


def _is_webp(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def _is_bmp(head: bytes, path: Path) -> bool:
    declared = int.from_bytes(head[2:6], "little")
    return head[:2] == b"BM" and declared in (0, path.stat().st_size)


def _is_video(head: bytes) -> bool:
    if any(head.startswith(magic) for magic, _ in _VIDEOS):
        return True
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return True
    if head[4:8] == b"ftyp":
        return head[8:12] not in _ISO_IMAGE_BRANDS
    return head[4:8] in _ISO_BOXES or _is_transport_stream(head)


def _is_transport_stream(head: bytes) -> bool:
    plain = len(head) > 376 and head[0] == head[188] == head[376] == 0x47
    stamped = len(head) > 388 and head[4] == head[196] == head[388] == 0x47
    return plain or stamped


def _describe(head: bytes) -> str:
    for magic, text in _NAMED:
        if head.startswith(magic):
            return text
    start = head.lstrip().lower()
    tests = (
        (head[:4] == b"RIFF" and head[8:12] == b"WAVE", "an audio file"),
        (head[4:8] == b"ftyp", "a HEIF or AVIF image; save it as JPEG or PNG"),
        (head[128:132] == b"DICM", "a DICOM object that is no whole-slide image"),
        (
            start.startswith((b"<!doctype html", b"<html")),
            "a web page (was a download link saved instead of the file?)",
        ),
        (_is_text(head), "a text file"),
    )
    for holds, text in tests:
        if holds:
            return text
    return f"of an unknown kind (it begins with {head[:8].hex(' ')})"


def _is_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not only a character cut at the end
            return False
    return not any(byte < 9 or 13 < byte < 32 for byte in head)
