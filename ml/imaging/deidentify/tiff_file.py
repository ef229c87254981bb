"""TIFF files and slides in TIFF (Aperio, Hamamatsu, Leica, Philips, Ventana, OME, plain).

Label, macro and all other images that are not the scanned tissue lose their pixels and, where
nothing counts the directories, their place in the file. Fields are overwritten by as many blanks,
so that no tile moves: what is passed through keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.deidentify.descriptions import clean_description, clean_properties, clean_xmp
from ml.imaging.deidentify.tiff_fields import ASCII, GPS, Directory, Field, TiffFields
from ml.imaging.deidentify.tiff_images import TiffImages, images_of
from ml.imaging.formats.tiff import is_ndpi

_WIDTH, _HEIGHT, _COMPRESSION, _DESCRIPTION, _SOFTWARE = 256, 257, 259, 270, 305
_XMP = 700
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
_JPEG = 7  # of the tag Compression, TIFF 6.0 Technical Note 2


def clean_tiff(path: Path, cleaned: Cleaned) -> None:
    """Overwrite, in a copy, what could name somebody.

    Raises:
        CorruptFileError, TooLargeError: as ``open_slide`` of a tiled TIFF.
    """
    images = TiffImages() if is_ndpi(path) else images_of(path, cleaned)
    with TiffFields(path) as tiff:
        pages = list(tiff.directories())
        dropped = set()
        for page in pages:
            inner = list(tiff.inner(page))
            for directory in (page, *(one for _, one in inner)):
                if name := _secondary(tiff, directory, images):
                    _drop_pixels(tiff, directory, images.stored_at)
                    cleaned.took(f"{name} image")
                    dropped.add(directory.offset)
            for tag, directory in inner:
                if tag == GPS:
                    _clean_position(tiff, directory, cleaned)
                else:
                    _clean_fields(tiff, directory, cleaned)
            _clean_fields(tiff, page, cleaned)
        if not _is_counted(tiff, pages[0]):
            _unlink(tiff, pages, dropped)


def _is_counted(tiff: TiffFields, first: Directory) -> bool:
    """Whether something in the file names directories by their number."""
    text = tiff.text(first.fields.get(_DESCRIPTION)).lstrip("\xef\xbb\xbf \r\n\t")
    return tiff.is_ndpi or text.startswith("<")  # SCN, OME and Philips name them in their XML


def _secondary(tiff: TiffFields, directory: Directory, images: TiffImages) -> str:
    """What a directory shows (label, macro, ...); "" where that is the scanned tissue."""
    if tiff.is_ndpi:
        lens = tiff.numbers(directory.fields.get(_NDPI_LENS))
        return {-1.0: "macro", -2.0: "map"}.get(lens[0], "") if lens else ""
    name = images.names.get(directory.offset, "")
    is_kept = not name if images.kept is None else directory.offset in images.kept
    if is_kept or not _has_pixels(tiff, directory):
        return ""
    width, height = (tiff.numbers(directory.fields.get(tag)) for tag in (_WIDTH, _HEIGHT))
    size = f"{width[0]:.0f} x {height[0]:.0f} px" if width and height else "hidden"
    return name or size


def _has_pixels(tiff: TiffFields, directory: Directory) -> bool:
    return any(any(tiff.numbers(directory.fields.get(tags[0]))) for tags in _STORED)


def _drop_pixels(tiff: TiffFields, directory: Directory, kept_at: npt.NDArray[np.uint64]) -> None:
    """Overwrite stored tiles or strips and, but in NDPI, the lists of them.

    Of an NDPI, a white JPEG is put where readers open it with the slide.
    """
    for tags in _STORED:
        at_field, size_field = (directory.fields.get(tag) for tag in tags)
        places, sizes = tiff.numbers(at_field), tiff.numbers(size_field)
        if tiff.is_ndpi and len(places) == 1 and len(sizes) == 1:
            sizes = [min(sizes[0], tiff.size - places[0])]
        is_kept = np.isin(np.asarray(places, np.uint64), kept_at)
        for at, size, shared in zip(places, sizes, is_kept, strict=False):
            if not shared:  # with an image that stays
                tiff.blank(int(at), int(size))
        if not tiff.is_ndpi:
            for listed in (at_field, size_field):
                if listed is not None:
                    tiff.blank(listed.at, listed.size)
            continue
        compression = tiff.numbers(directory.fields.get(_COMPRESSION))
        if compression == [_JPEG] and len(places) == 1 and sizes:
            white = _white_jpeg(tiff, directory)
            if len(white) <= sizes[0]:
                tiff.write(int(places[0]), white)


def _white_jpeg(tiff: TiffFields, directory: Directory) -> bytes:
    width = int(tiff.numbers(directory.fields.get(_WIDTH))[0])
    height = int(tiff.numbers(directory.fields.get(_HEIGHT))[0])
    white = np.full((height, width, 3), 255, np.uint8)
    return bytes(cv2.imencode(".jpg", white, [cv2.IMWRITE_JPEG_QUALITY, 50])[1].tobytes())


def _unlink(tiff: TiffFields, pages: Sequence[Directory], dropped: Collection[int]) -> None:
    """Take pages out of the chain of directories: the one before leads past them."""
    kept_at = tiff.first_at
    for page in pages:
        if page.offset in dropped:
            tiff.point(kept_at, page.following)
            _blank_text(tiff, page.fields.get(_DESCRIPTION))
        else:
            kept_at = page.following_at


def _clean_fields(tiff: TiffFields, directory: Directory, cleaned: Cleaned) -> None:
    names = _NAMED | _NAMED_NDPI if tiff.is_ndpi else _NAMED
    software = tiff.text(directory.fields.get(_SOFTWARE))
    for one in directory.listed:
        if one.tag == _DESCRIPTION:
            _rewrite(tiff, one, clean_description(tiff.data(one), software, cleaned))
        elif one.tag == _XMP:
            _rewrite(tiff, one, clean_xmp(tiff.data(one), cleaned))
        elif one.tag == _NDPI_PROPERTIES and tiff.is_ndpi:
            _rewrite(tiff, one, clean_properties(tiff.data(one), cleaned))
        elif (one.tag in names or (one.kind == ASCII and one.tag not in _TECHNICAL)) and tiff.data(
            one
        ).strip(b"\0 "):
            _blank_text(tiff, one)
            cleaned.took(names.get(one.tag, f"TIFF tag {one.tag}"))


def _clean_position(tiff: TiffFields, directory: Directory, cleaned: Cleaned) -> None:
    for one in directory.listed:
        if tiff.data(one).strip(b"\0"):
            tiff.blank(one.at, one.size)
            cleaned.took("GPS position")


def _blank_text(tiff: TiffFields, text: Field | None) -> None:
    if text is None or not text.size:
        return
    if text.kind == ASCII:
        tiff.write(text.at, b" " * (text.size - 1) + b"\0")
    else:
        tiff.blank(text.at, text.size)


def _rewrite(tiff: TiffFields, text: Field, data: bytes) -> None:
    if len(data) != text.size:
        raise ValueError(f"a field of {text.size} bytes was cleaned to {len(data)}")
    tiff.write(text.at, data)
