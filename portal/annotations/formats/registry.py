"""The table of all formats that are read and written."""

from __future__ import annotations

from typing import IO

from portal.annotations.formats.asap import Asap
from portal.annotations.formats.coco import Coco
from portal.annotations.formats.cvat import Cvat
from portal.annotations.formats.dicom import DicomAnnotations
from portal.annotations.formats.geojson import GeoJson
from portal.annotations.formats.masks import LabelMask
from portal.annotations.formats.pictures import Picture
from portal.annotations.formats.sniffing import HEAD_BYTES, head_clean
from portal.annotations.formats.tables import Table
from portal.annotations.formats.types import FormatError, FormatReader, FormatWriter
from portal.annotations.formats.web import WebAnnotations
from portal.core.errors import InvalidInputError

_READERS: tuple[FormatReader, ...] = (GeoJson(), Asap(), Coco(), Cvat())
_WRITERS: tuple[FormatWriter, ...] = (
    GeoJson(),
    Asap(),
    Coco(),
    Cvat(),
    Table(),
    Picture(),
    LabelMask(),
    DicomAnnotations(),
    WebAnnotations(),
)
READERS = {reader.name: reader for reader in _READERS}
WRITERS = {writer.name: writer for writer in _WRITERS}
AUTO, GEOJSON = "auto", GeoJson.name


def reader_of(stream: IO[bytes], *, format_name: str = AUTO) -> FormatReader:
    """The reader of this name, or the one that fits the content of the document.

    Raises:
        FormatError: its content fits no format that is read.
    """
    if format_name != AUTO:
        return READERS[format_name]
    stream.seek(0)
    head = head_clean(stream.read(HEAD_BYTES))
    for reader in READERS.values():
        if reader.sniff(head):
            return reader
    titles = ", ".join(reader.title for reader in READERS.values())
    raise FormatError(
        f"The format of this document was not recognised. Supported formats: {titles}.",
        code="unknown-format",
    )


def writer_named(name: str) -> FormatWriter:
    """The writer of this name; ``InvalidInputError`` where there is none."""
    if name not in WRITERS:
        raise InvalidInputError(f"format: one of {', '.join(WRITERS)}.")
    return WRITERS[name]
