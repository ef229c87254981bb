"""TIFF files and slides in TIFF (Aperio, Hamamatsu, Leica, Philips, Ventana, OME, plain).

Label and macro images lose their pixels and, where nothing counts the directories, their place in
the file. Fields are overwritten by as many blanks, so that no tile moves: what is passed through
keeps its bytes.
"""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.deidentify.descriptions import clean_description, clean_properties, clean_xmp
from ml.imaging.deidentify.tiff_fields import ASCII, GPS, Directory, Field, TiffFields

_WIDTH, _HEIGHT, _COMPRESSION, _DESCRIPTION, _SOFTWARE = 256, 257, 259, 270, 305
_SUBFILE, _XMP = 254, 700
_STORED = ((324, 325), (273, 279))
"""Tags of where tiles, or strips, lie and how long they are."""
_NAMED = {
    269: "DocumentName",
    285: "PageName",
    306: "DateTime",
    315: "Artist",
    316: "HostComputer",
    33432: "Copyright",
    33723: "IPTC",
    34377: "Photoshop",
    36867: "DateTimeOriginal",
    36868: "DateTimeDigitized",
    37500: "MakerNote",
    37510: "UserComment",
    37724: "ImageSourceData",
    40091: "XPTitle",
    40092: "XPComment",
    40093: "XPAuthor",
    40094: "XPKeywords",
    40095: "XPSubject",
    42016: "ImageUniqueID",
    42032: "CameraOwnerName",
    42033: "BodySerialNumber",
    42037: "LensSerialNumber",
    50839: "ImageJ metadata",
}
"""TIFF 6.0, Exif 3.0, and what Windows, Photoshop and ImageJ add; other texts have a number."""
_TECHNICAL = (271, 272, _SOFTWARE, 42035, 42036)
"""Texts that stay: maker, model and program, and those of the lens."""
_NAMED_NDPI = {65427: "SlideLabel", 65428: "AuthCode", 65434: "FluorescenceName", 65442: "Serial"}
_NDPI_PROPERTIES, _NDPI_LENS = 65449, 65421
_LABELS = re.compile(r"(?im)^\s*(label|macro|overview|barcode)(?:[ _]?image)?\b")
_APERIO_LABELS = (1, 9)
"""NewSubfileType of Aperio's label and macro."""
_JPEG = 7  # of the tag Compression, TIFF 6.0 Technical Note 2


def clean_tiff(path: Path, cleaned: Cleaned) -> None:
    """Overwrite, in a copy, what could name somebody."""
    with TiffFields(path) as tiff:
        is_counted = tiff.is_ndpi
        for number, directory in enumerate(tiff.directories()):
            is_counted = is_counted or (number == 0 and _is_counted(tiff, directory))
            name = _secondary(tiff, directory) if number else ""
            if name:
                _drop_pixels(tiff, directory, keep_readable=tiff.is_ndpi)
                cleaned.took(f"{name} image")
            for tag, inner in tiff.inner(directory):
                if tag == GPS:
                    _clean_position(tiff, inner, cleaned)
                else:
                    _clean_fields(tiff, inner, cleaned)
            _clean_fields(tiff, directory, cleaned)
        if not is_counted:
            _unlink_secondary(tiff)


def _is_counted(tiff: TiffFields, first: Directory) -> bool:
    """Whether something in the file names directories by their number."""
    text = tiff.text(first.fields.get(_DESCRIPTION)).lstrip()
    return text.startswith("<")  # SCN, OME and Philips name them in their XML


def _secondary(tiff: TiffFields, directory: Directory) -> str:
    """What a directory shows (label, macro, ...); "" where that is the scanned tissue."""
    fields = directory.fields
    if tiff.is_ndpi:
        lens = tiff.numbers(fields.get(_NDPI_LENS))
        return {-1.0: "macro", -2.0: "map"}.get(lens[0], "") if lens else ""
    text = tiff.text(fields.get(_DESCRIPTION))
    subfile = tiff.numbers(fields.get(_SUBFILE))
    if text.startswith("Aperio") and subfile and int(subfile[0]) in _APERIO_LABELS:
        return "label" if int(subfile[0]) == 1 else "macro"
    found = _LABELS.search(text)
    return found[1].lower() if found else ""


def _drop_pixels(tiff: TiffFields, directory: Directory, *, keep_readable: bool) -> None:
    """Overwrite stored tiles or strips; put a white JPEG where readers open it with the slide."""
    for at_tag, size_tag in _STORED:
        places = tiff.numbers(directory.fields.get(at_tag))
        sizes = tiff.numbers(directory.fields.get(size_tag))
        if tiff.is_ndpi and len(places) == 1 and len(sizes) == 1:
            sizes = [min(sizes[0], tiff.size - places[0])]
        for at, size in zip(places, sizes, strict=False):
            tiff.blank(int(at), int(size))
        compression = tiff.numbers(directory.fields.get(_COMPRESSION))
        if keep_readable and compression == [_JPEG] and len(places) == 1 and sizes:
            white = _white_jpeg(tiff, directory)
            if len(white) <= sizes[0]:
                tiff.write(int(places[0]), white)


def _white_jpeg(tiff: TiffFields, directory: Directory) -> bytes:
    width = int(tiff.numbers(directory.fields.get(_WIDTH))[0])
    height = int(tiff.numbers(directory.fields.get(_HEIGHT))[0])
    white = np.full((height, width, 3), 255, np.uint8)
    return bytes(cv2.imencode(".jpg", white, [cv2.IMWRITE_JPEG_QUALITY, 50])[1].tobytes())


def _unlink_secondary(tiff: TiffFields) -> None:
    """Take label and macro out of the chain of directories: the one before leads past them."""
    kept_at = 0
    for number, directory in enumerate(list(tiff.directories())):
        if number and _secondary(tiff, directory):
            tiff.point(kept_at, directory.following)
            _blank_text(tiff, directory.fields.get(_DESCRIPTION))
        else:
            kept_at = directory.following_at


def _clean_fields(tiff: TiffFields, directory: Directory, cleaned: Cleaned) -> None:
    names = _NAMED | _NAMED_NDPI if tiff.is_ndpi else _NAMED
    software = tiff.text(directory.fields.get(_SOFTWARE))
    for field in directory.listed:
        if field.tag == _DESCRIPTION:
            _rewrite(tiff, field, clean_description(tiff.data(field), software, cleaned))
        elif field.tag == _XMP:
            _rewrite(tiff, field, clean_xmp(tiff.data(field), cleaned))
        elif field.tag == _NDPI_PROPERTIES and tiff.is_ndpi:
            _rewrite(tiff, field, clean_properties(tiff.data(field), cleaned))
        elif (
            field.tag in names or (field.kind == ASCII and field.tag not in _TECHNICAL)
        ) and tiff.data(field).strip(b"\0 "):
            _blank_text(tiff, field)
            cleaned.took(names.get(field.tag, f"TIFF tag {field.tag}"))


def _clean_position(tiff: TiffFields, directory: Directory, cleaned: Cleaned) -> None:
    for field in directory.listed:
        if tiff.data(field).strip(b"\0"):
            tiff.blank(field.at, field.size)
            cleaned.took("GPS position")


def _blank_text(tiff: TiffFields, field: Field | None) -> None:
    if field is None or not field.size:
        return
    if field.kind == ASCII:
        tiff.write(field.at, b" " * (field.size - 1) + b"\0")
    else:
        tiff.blank(field.at, field.size)


def _rewrite(tiff: TiffFields, field: Field, data: bytes) -> None:
    if len(data) != field.size:
        raise ValueError(f"a field of {field.size} bytes was cleaned to {len(data)}")
    tiff.write(field.at, data)
