"""Target of the confined child: the device that made a file, as the file names it."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import openslide
import pydicom
from PIL import Image
from pydicom.errors import InvalidDicomError

from ml.errors import BadInputError
from ml.imaging.formats.archives import is_zip, open_archive
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.ngff import MAX_XML_BYTES, OME_XML
from ml.imaging.formats.ome import ome_microscope
from ml.imaging.formats.sniff import HEAD_BYTES, is_dicom_slide, read_head, sniff
from ml.imaging.formats.zarr_store import is_zarr, open_zarr
from ml.imaging.limits import MAX_ZARR_ENTRIES
from ml.imaging.slides.backends import slide_vendor
from ml.imaging.videos.containers import open_video
from ml.types import JsonObject, Progress, no_progress

MAX_CHARS = 120
_TIFF_TAGS = (271, 272, 305)  # maker, model, software; Exif has the same numbers
_UNREADABLE = (
    *(BadInputError, InvalidDicomError, Image.DecompressionBombError),
    *(OSError, ValueError, SyntaxError, struct.error, openslide.OpenSlideError),
)
_SLIDE_NAMES = (
    *("tiff.Make", "leica.device-model", "leica.device-version"),
    *("philips.DICOM_MANUFACTURER", "philips.DICOM_SOFTWARE_VERSIONS"),
    *("ventana.ScannerModel", "ventana.BuildVersion"),
    *("zeiss.Information.Application.Name", "zeiss.Information.Application.Version"),
    *("tiff.Model", "hamamatsu.Product", "tiff.Software"),
)
"""Properties of OpenSlide that name a scanner, of its makers' formats."""
_APERIO = re.compile(r"Aperio [^\r\n;|]*")
_SET_MAKERS = {".mrxs": "mirax", ".vms": "hamamatsu", ".vmu": "hamamatsu"}
"""OpenSlide's names of the formats of several files, by the suffix of their index."""
_NO_MAKER = "generic-tiff"
_DICOM_NAMES = ("Manufacturer", "ManufacturerModelName", "SoftwareVersions")
_VIDEO_NAMES = (
    *("make", "model", "software"),
    *(f"com.apple.quicktime.{name}" for name in ("make", "model", "software")),
    "encoder",
)
_CONVERTERS = re.compile(r"Lav[cf]|HandBrake|GStreamer|tifffile|ImageMagick", re.I)
"""Prefixes of names of programs that convert files; they do not name a device."""


def device(*, path: str, progress: Progress = no_progress) -> JsonObject:
    """Find maker, model and software of the device that made a file.

    Returns:
        {"device"}: At most ``MAX_CHARS``; "" if the file names none, or cannot be read.
    """
    source = Path(path)
    head = read_head(source)
    try:
        if is_dicom_slide(head) or is_dicom_video(head):
            with source.open("rb") as file:
                texts = _dicom_device(file)
        elif is_zip(head):
            texts = _zarr_device(source) if is_zarr(source) else _archive_device(source)
        elif (kind := sniff(source)) == "video":
            texts = _video_device(source)
        else:
            texts = _slide_device(source) if kind == "slide" else _still_device(source)
    except _UNREADABLE:
        texts = []
    return {"device": _join_texts(texts)}


def _dicom_device(file: BinaryIO) -> list[str]:
    data = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_DICOM_NAMES))
    values = [data.get(name, "") for name in _DICOM_NAMES]
    return [value if isinstance(value, str) else " ".join(map(str, value)) for value in values]


def _zarr_device(path: Path) -> list[str]:
    with open_zarr(path) as store:
        xml = store.read(OME_XML, max_bytes=MAX_XML_BYTES) or b""
    return ome_microscope(xml.decode("utf-8", "replace"))


def _archive_device(path: Path) -> list[str]:
    """Device of a DICOM series, or the maker to whose format the other files belong."""
    with open_archive(path, max_entries=MAX_ZARR_ENTRIES) as (archive, files):
        for entry in files:
            maker = _SET_MAKERS.get(PurePosixPath(entry.filename).suffix.lower())
            if maker is not None:
                return [maker]
        for entry in files:
            with archive.open(entry) as member:
                if is_dicom_slide(member.read(HEAD_BYTES)):
                    member.seek(0)
                    return _dicom_device(member)  # type: ignore[arg-type]  # a readable file
    return []


def _video_device(path: Path) -> list[str]:
    with open_video(path) as (container, stream):
        tags = {name.lower(): text for name, text in (stream.metadata | container.metadata).items()}
    return [tags.get(name, "") for name in _VIDEO_NAMES]


def _slide_device(path: Path) -> list[str]:
    """Name of the format, which is the maker's, and the scanner and its software."""
    vendor = slide_vendor(path) or ""
    if not vendor:
        return []
    with openslide.OpenSlide(path) as slide:
        texts = _scanner(slide.properties)
    is_named = any(vendor in text.casefold() for text in texts)
    return texts if is_named or vendor == _NO_MAKER else [vendor, *texts]


def _scanner(properties: Mapping[str, str]) -> list[str]:
    description = properties.get("tiff.ImageDescription", "")
    aperio = _APERIO.match(description)
    texts = [aperio[0]] if aperio else ome_microscope(description)
    return [*texts, *(properties.get(name, "") for name in _SLIDE_NAMES)]


def _still_device(path: Path) -> list[str]:
    with Image.open(path) as image:
        exif = image.getexif()
        return [str(exif.get(tag, "")) for tag in _TIFF_TAGS]


def _join_texts(texts: Iterable[str]) -> str:
    """Each printable text once, without converters, separated by spaces."""
    words = ("".join(c for c in text if c.isprintable()).strip() for text in texts)
    names = dict.fromkeys(word for word in words if word and not _CONVERTERS.match(word))
    return " ".join(names)[:MAX_CHARS].strip()
