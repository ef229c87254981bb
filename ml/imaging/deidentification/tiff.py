"""De-identification of TIFF files (Aperio, Hamamatsu, Leica, Philips, Ventana, OME, plain).

Label, macro and other images that are not the scanned tissue lose their pixels and, unless a text
refers to directories by number, their place in the chain. Fields are overwritten with blanks, so
that no tile moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ml.imaging.deidentification.descriptions import clean_description, clean_properties, clean_xmp
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.deidentification.tiff_fields import GPS, WritableTiff
from ml.imaging.deidentification.tiff_images import TiffImages, images_of
from ml.imaging.formats.tiff import is_ndpi
from ml.imaging.formats.tiff_fields import (
    ASCII,
    STRIP_COUNTS,
    STRIP_OFFSETS,
    TILE_COUNTS,
    TILE_OFFSETS,
    Ifd,
    TiffField,
)
from ml.imaging.limits import require_still_size

_WIDTH, _HEIGHT, _COMPRESSION, _DESCRIPTION, _SOFTWARE = 256, 257, 259, 270, 305
_XMP = 700
_STORED = ((TILE_OFFSETS, TILE_COUNTS), (STRIP_OFFSETS, STRIP_COUNTS))
"""Tags of the offsets and byte counts of tiles and strips."""
_PRIVATE = (
    *(269, 285, 306, 315, 316, 33432),  # document, page, date, artist, computer, copyright
    *(36867, 36868, 37500, 37510, 42016, 42032, 42033, 42037),  # Exif: dates, notes, owner, serials
    *(33723, 34377, 37724),  # IPTC and Photoshop
    *range(40091, 40096),  # Windows: title, comment, author, keywords, subject
    50839,  # ImageJ
)
"""Tags to blank whatever their type; texts of other tags are blanked except ``_TECHNICAL``."""
_TECHNICAL = (271, 272, _SOFTWARE, 42035, 42036)
"""Texts to keep: maker, model and program, and those of the lens."""
_PRIVATE_NDPI = {65427: "SlideLabel", 65428: "AuthCode", 65434: "FluorescenceName", 65442: "Serial"}
_NDPI_PROPERTIES, _NDPI_LENS = 65449, 65421
_JPEG = 7  # of the tag Compression, TIFF 6.0 Technical Note 2


def clean_tiff(path: Path, cleaned: DeidentificationResult) -> None:
    """Overwrite the identifying data of a copy.

    Raises:
        CorruptFileError, TooLargeError: as ``open_slide`` of a tiled TIFF.
    """
    images = TiffImages() if is_ndpi(path) else images_of(path, cleaned)
    with WritableTiff(path) as tiff:
        pages = list(tiff.chain())
        dropped = set()
        for page in pages:
            inner = list(tiff.inner(page))
            for directory in (page, *(ifd for _, ifd in inner)):
                if name := _secondary(tiff, directory, images):
                    _drop_pixels(tiff, directory, images.stored_at)
                    cleaned.add_removed(f"{name} image")
                    dropped.add(directory.offset)
            for tag, directory in inner:
                if tag == GPS:
                    _clean_position(tiff, directory, cleaned)
                else:
                    _clean_fields(tiff, directory, cleaned)
            _clean_fields(tiff, page, cleaned)
        if not _is_counted(tiff, pages[0]):
            _unlink(tiff, pages, dropped)


def _is_counted(tiff: WritableTiff, first: Ifd) -> bool:
    """Return whether something in the file names directories by their number."""
    text = tiff.text(first.fields.get(_DESCRIPTION)).lstrip("\xef\xbb\xbf \r\n\t")
    return tiff.is_ndpi or text.startswith("<")  # SCN, OME and Philips name them in their XML


def _secondary(tiff: WritableTiff, directory: Ifd, images: TiffImages) -> str:
    """Kind of a secondary image (label, macro, ...); "" for the scanned tissue."""
    if tiff.is_ndpi:
        lens = tiff.numbers(directory.fields.get(_NDPI_LENS))
        return {-1.0: "macro", -2.0: "map"}.get(lens[0], "") if lens else ""
    name = images.names.get(directory.offset, "")
    is_shown = not name if images.tissue is None else directory.offset in images.tissue
    if is_shown or not _has_pixels(tiff, directory):
        return ""
    width, height = (tiff.numbers(directory.fields.get(tag)) for tag in (_WIDTH, _HEIGHT))
    size = f"{width[0]:.0f} x {height[0]:.0f} px" if width and height else "hidden"
    return name or size


def _has_pixels(tiff: WritableTiff, directory: Ifd) -> bool:
    return any(any(tiff.numbers(directory.fields.get(tags[0]))) for tags in _STORED)


def _drop_pixels(tiff: WritableTiff, directory: Ifd, stored_at: npt.NDArray[np.uint64]) -> None:
    """Overwrite stored tiles or strips and, except in NDPI, their lists.

    In NDPI, a white JPEG replaces the image, since readers open it with the slide.
    """
    for tags in _STORED:
        at_field, size_field = (directory.fields.get(tag) for tag in tags)
        places, sizes = tiff.numbers(at_field), tiff.numbers(size_field)
        if tiff.is_ndpi and len(places) == 1 and len(sizes) == 1:
            sizes = [min(sizes[0], tiff.size - places[0])]
        is_shared = np.isin(np.asarray(places, np.uint64), stored_at)
        for at, size, shared in zip(places, sizes, is_shared, strict=False):
            if not shared:  # also used by an image that stays
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
                tiff.write_tile(int(places[0]), white)


def _white_jpeg(tiff: WritableTiff, directory: Ifd) -> bytes:
    """A white picture of a directory's size; a pixel if it states none."""
    sides = (tiff.numbers(directory.fields.get(tag)) for tag in (_WIDTH, _HEIGHT))
    width, height = (max(1, int(side[0])) if side else 1 for side in sides)
    require_still_size(width, height)
    white = np.full((height, width, 3), 255, np.uint8)
    return bytes(cv2.imencode(".jpg", white, [cv2.IMWRITE_JPEG_QUALITY, 50])[1].tobytes())


def _unlink(tiff: WritableTiff, pages: Sequence[Ifd], dropped: Collection[int]) -> None:
    """Remove pages from the chain of directories."""
    pointer_at = tiff.first_at
    for page in pages:
        if page.offset in dropped:
            tiff.point(pointer_at, page.next_offset)
            tiff.blank_text(page.fields.get(_DESCRIPTION))
        else:
            pointer_at = page.next_at


def _clean_fields(tiff: WritableTiff, directory: Ifd, cleaned: DeidentificationResult) -> None:
    names = _PRIVATE_NDPI if tiff.is_ndpi else {}
    software = tiff.text(directory.fields.get(_SOFTWARE))
    for field in directory.listed:
        if field.tag == _DESCRIPTION:
            tiff.rewrite(field, clean_description(tiff.data(field), software, cleaned))
        elif field.tag == _XMP:
            tiff.rewrite(field, clean_xmp(tiff.data(field), cleaned))
        elif field.tag == _NDPI_PROPERTIES and tiff.is_ndpi:
            tiff.rewrite(field, clean_properties(tiff.data(field), cleaned))
        elif _is_private(field, names) and tiff.data(field).strip(b"\0 "):
            cleaned.add_removed(names.get(field.tag) or _tag_name(field.tag), tiff.text(field))
            tiff.blank_text(field)


def _is_private(field: TiffField, names: Mapping[int, str]) -> bool:
    is_text = field.kind == ASCII and field.tag not in _TECHNICAL
    return is_text or field.tag in _PRIVATE or field.tag in names


def _tag_name(tag: int) -> str:
    from tifffile import TIFF  # an eighth of a second, only if there is something to name

    return str(TIFF.TAGS.get(tag, f"TIFF tag {tag}"))


def _clean_position(tiff: WritableTiff, directory: Ifd, cleaned: DeidentificationResult) -> None:
    for field in directory.listed:
        if tiff.data(field).strip(b"\0"):
            tiff.blank(field.at, field.size)
            cleaned.add_removed("GPS position")
