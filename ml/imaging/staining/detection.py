"""The stain that a file names: in DICOM by codes, in TIFF in the image description."""

from __future__ import annotations

import html
import re
from pathlib import Path

from ml.errors import BadInputError
from ml.imaging.formats.frame_groups import read_head as read_dicom
from ml.imaging.formats.sniff import is_dicom_slide, read_head
from ml.imaging.formats.tiff import read_directories
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.staining.dicom import stain_of
from ml.imaging.staining.terms import stain_named

_NAME = r"(?:[\w.:-]{1,40}[.:_])?stain(?:ing)?(?:[ _-]?(?:name|type|description))?"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"[|\n]\s*{_NAME}\s*=\s*([^|\r\n]{{1,80}})",  # Aperio's fields, and one a line
        rf"<{_NAME}\s*>([^<>]{{1,80}})</",  # <Stain>H&amp;E</Stain>
        rf"\s{_NAME}\s*=\s*[\"']([^\"'<>]{{1,80}})[\"']",  # Stain="H&amp;E"
        # <M K="Stain">H&amp;E</M> of OME, and <Attribute Name="Stain">
        rf"\s(?:K|Name)\s*=\s*[\"']{_NAME}[\"'][^<>]{{0,200}}>([^<>]{{1,80}})</",
        # what libvips writes of a slide that it has converted
        rf"<name>{_NAME}</name>\s{{0,80}}<value[^<>]{{0,80}}>([^<>]{{1,80}})</",
    )
)


def stain_of_file(path: str | Path) -> str:
    """The stain that a slide's file names; "" where it names none that is known.

    A file that cannot be read names none; what is wrong with it is reported elsewhere.
    """
    head = read_head(path)
    try:
        if is_dicom_slide(head):
            with Path(path).open("rb") as file:
                return stain_of(read_dicom(file))
        if not is_tiff(head):
            return ""
        return stain_in_text(read_directories(path, limit=1)[0].description)
    except BadInputError:
        return ""


def stain_in_text(text: str) -> str:
    """The stain named in a description: the value of a field that is called so."""
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if stain := stain_named(html.unescape(match[1]).strip()):
                return stain
    return ""
