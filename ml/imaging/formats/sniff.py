"""File formats by content. File names and content types are not trusted.

No decoder runs here, and no other file is read: formats that are a text naming other files
(VMS, VMU) or a folder (MRXS) are never one file.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Literal

from ml.errors import UnsupportedFormatError
from ml.imaging.formats.archives import is_zip, open_archive
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.jpeg2000 import is_jpeg2000
from ml.imaging.formats.tiff import is_ndpi
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.formats.zarr_store import zarr_root
from ml.imaging.limits import MAX_ZARR_ENTRIES
from ml.types import Progress, no_progress

FileKind = Literal["slide", "still", "video"]
ACCEPTED = (
    "a whole-slide image (SVS, NDPI, SCN, BIF, CZI, tiled TIFF, DICOM; "
    "MRXS, VMS, VMU, OME-Zarr or a DICOM series as one ZIP archive), "
    "an image (JPEG, JPEG 2000, PNG, TIFF, WebP, BMP) "
    "or a video (MP4, MOV, WebM, MKV, AVI, WMV, MPEG, DICOM video)"
)
_STILLS = ((b"\xff\xd8\xff", "jpeg"), (b"\x89PNG\r\n\x1a\n", "png"))
_CZI = b"ZISRAWFILE"
_VIDEOS = (
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
    (b"\x00\x00\x01\xba", "mpeg"),
    (b"\x00\x00\x01\xb3", "mpegvideo"),
    (b"FLV\x01", "flv"),
    (b"OggS", "ogg"),
    (b"\x06\x0e\x2b\x34", "mxf"),
)
"""First bytes of containers, and FFmpeg's names of their demuxers."""
_WHOLE_SLIDE_CLASS = b"1.2.840.10008.5.1.4.1.1.77.1.6"
"""VL Whole Slide Microscopy Image Storage: DICOM PS3.6, table A-1."""
HEAD_BYTES = 1_024  # a DICOM object states its SOP class within these bytes
INDEXES = (".mrxs", ".vms", ".vmu")
"""Suffixes of index files of slides of several files."""
PIXELS_NAME = "pixels.tif"
"""Name of the pyramid made from a still."""
SET_FOLDER = "set"
"""Subfolder for a slide of several files in its derived folder."""
SETS = "MRXS with its folder, VMS or VMU with its files, OME-Zarr, or a DICOM series"
_MAX_MEMBERS_READ = 20  # files of an archive whose first bytes are read to detect a DICOM series
_NAMED = (
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
    """Detect whether a file is a slide, a still or a video.

    Returns:
        "slide" for tiled TIFFs, NDPI, CZI and DICOM slides, and for a ZIP archive with a slide of
        several files; "still" for a flat image; or "video".
    Raises:
        UnsupportedFormatError: none of them; the message names what was found and what is accepted.
        CorruptFileError: a TIFF whose directory is damaged or cut, or such an archive.
        TooLargeError: a TIFF's tags or an archive's files are beyond the limits.
    """
    path = Path(path)
    head = read_head(path)
    if not head:
        raise UnsupportedFormatError(f"the file is empty (0 bytes); expected {ACCEPTED}")
    if is_tiff(head):
        return _tiff_kind(path)
    if head.startswith(_CZI) or is_dicom_slide(head) or (is_zip(head) and _holds_set(path)):
        return "slide"
    if still_format(head) or is_jpeg2000(head) or _is_bmp(head, path):
        return "still"
    if video_format(head) or is_dicom_video(head):
        return "video"
    raise UnsupportedFormatError(f"the file is {_describe(head)}; expected {ACCEPTED}")


def sniff_file(*, path: str, progress: Progress = no_progress) -> dict[str, str]:
    """``sniff`` for a child process: {"kind": ...}."""
    return {"kind": sniff(path)}


def read_head(path: str | Path) -> bytes:
    """Read the first bytes of a file, enough for every test here."""
    with Path(path).open("rb") as file:
        return file.read(HEAD_BYTES)


def is_one_file_slide(path: str | Path) -> bool:
    """Return whether a file by its first bytes is of a slide format that needs no other file."""
    head = read_head(path)
    return is_tiff(head) or head.startswith(_CZI) or is_dicom_slide(head)


def is_dicom_slide(head: bytes) -> bool:
    """Return whether the first bytes of a file are a DICOM object of a whole-slide image."""
    return head[128:132] == b"DICM" and _WHOLE_SLIDE_CLASS in head


def still_format(head: bytes) -> str:
    """libvips loader of a JPEG, PNG or WebP still, else ""."""
    name_of_magic = next((name for magic, name in _STILLS if head.startswith(magic)), "")
    return name_of_magic or ("webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else "")


def video_format(head: bytes) -> str:
    """FFmpeg's name of the container that a file's first bytes announce; "" if none."""
    name_of_magic = next((name for magic, name in _VIDEOS if head.startswith(magic)), "")
    if name_of_magic:
        return name_of_magic
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    if head[4:8] in _ISO_BOXES and not (head[4:8] == b"ftyp" and head[8:12] in _ISO_IMAGE_BRANDS):
        return "mov"
    return "mpegts" if _is_transport_stream(head) else ""


def _holds_set(path: Path) -> bool:
    """Return whether a ZIP archive holds a slide of several files."""
    with open_archive(path, max_entries=MAX_ZARR_ENTRIES) as (archive, files):
        if zarr_root(entry.filename for entry in files) is not None:
            return True
        if any(PurePosixPath(entry.filename).suffix.lower() in INDEXES for entry in files):
            return True
        for entry in files[:_MAX_MEMBERS_READ]:
            with archive.open(entry) as member:
                if is_dicom_slide(member.read(HEAD_BYTES)):
                    return True
    raise UnsupportedFormatError(
        "the file is a ZIP archive; unpack it and upload the slides and videos in it one by one (a"
        f" ZIP archive is accepted only for {SETS})"
    )


def _tiff_kind(path: Path) -> FileKind:
    if is_ndpi(path):
        return "slide"
    return "slide" if read_layout(path).levels[0].is_tiled else "still"


def _is_bmp(head: bytes, path: Path) -> bool:
    declared = int.from_bytes(head[2:6], "little")
    return head[:2] == b"BM" and declared in (0, path.stat().st_size)


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
        (
            head[128:132] == b"DICM",
            "a DICOM object that is neither a whole-slide image nor a video",
        ),
        (
            start.startswith((b"<!doctype html", b"<html")),
            "a web page (was a download link saved instead of the file?)",
        ),
        (
            b"virtual microscope specimen]" in start,
            "the index of a VMS or VMU slide; send it together with the files that it names",
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
