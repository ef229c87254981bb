"""Target of the confined child: the device that made a file, as the file names it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import pydicom
from PIL import Image
from pydicom.errors import InvalidDicomError

from ml.errors import BadInputError
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.sniff import is_dicom_slide, read_head, sniff
from ml.imaging.slides.backends import slide_vendor
from ml.imaging.videos.containers import open_video
from ml.types import JsonObject, Progress, no_progress

MAX_CHARS = 120
_TIFF_TAGS = (271, 272, 305)  # maker, model, software; Exif has the same numbers
_UNREADABLE = (
    *(BadInputError, InvalidDicomError, Image.DecompressionBombError),
    *(OSError, ValueError, SyntaxError, struct.error),
)
_NO_MAKER = "generic-tiff"
_DICOM_NAMES = ("Manufacturer", "ManufacturerModelName", "SoftwareVersions")
_VIDEO_NAMES = (
    *("make", "model", "software"),
    *(f"com.apple.quicktime.{name}" for name in ("make", "model", "software")),
    "encoder",
)


def device(*, path: str, progress: Progress = no_progress) -> JsonObject:
    """Find maker, model and software of the device that made a file.

    Returns:
        {"device"}: At most ``MAX_CHARS``; "" if the file names none, or cannot be read.
    """
    source = Path(path)
    head = read_head(source)
    try:
        if is_dicom_slide(head) or is_dicom_video(head):
            texts = _of_dicom(source)
        elif (kind := sniff(source)) == "video":
            texts = _of_video(source)
        else:
            texts = _of_slide(source) if kind == "slide" else _of_still(source)
    except _UNREADABLE:
        texts = []
    return {"device": _joined(texts)}


def _of_dicom(path: Path) -> list[str]:
    data = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=list(_DICOM_NAMES))
    values = [data.get(name, "") for name in _DICOM_NAMES]
    return [value if isinstance(value, str) else " ".join(map(str, value)) for value in values]


def _of_video(path: Path) -> list[str]:
    with open_video(path) as (container, stream):
        tags = {name.lower(): text for name, text in (stream.metadata | container.metadata).items()}
    return [tags.get(name, "") for name in _VIDEO_NAMES]


def _of_slide(path: Path) -> list[str]:
    """OpenSlide's name of the format, which is that of the scanner's maker."""
    vendor = slide_vendor(path) or ""
    return [vendor] if vendor != _NO_MAKER else []


def _of_still(path: Path) -> list[str]:
    with Image.open(path) as image:
        exif = image.getexif()
        return [str(exif.get(tag, "")) for tag in _TIFF_TAGS]


def _joined(texts: Iterable[str]) -> str:
    """Each printable text once, separated by spaces."""
    words = ("".join(c for c in text if c.isprintable()).strip() for text in texts)
    return " ".join(dict.fromkeys(word for word in words if word))[:MAX_CHARS].strip()
