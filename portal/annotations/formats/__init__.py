"""File formats of regions: one table, one protocol to read and one to write."""

from portal.annotations.formats.images import name_is_of
from portal.annotations.formats.registry import (
    AUTO,
    GEOJSON,
    READERS,
    WRITERS,
    reader_of,
    writer_named,
)
from portal.annotations.formats.seams import (
    NO_LABEL,
    ExportChoices,
    FormatError,
    FormatReader,
    FormatWriter,
    Plane,
    plane_of,
)
from portal.annotations.formats.tables import cell
from portal.annotations.formats.unpacking import MAX_BYTES, Document, documents_open

__all__ = [
    "AUTO",
    "GEOJSON",
    "MAX_BYTES",
    "NO_LABEL",
    "READERS",
    "WRITERS",
    "Document",
    "ExportChoices",
    "FormatError",
    "FormatReader",
    "FormatWriter",
    "Plane",
    "cell",
    "documents_open",
    "name_is_of",
    "plane_of",
    "reader_of",
    "writer_named",
]
