"""File formats of regions: one table, one protocol to read and one to write."""

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

__all__ = [
    "AUTO",
    "GEOJSON",
    "NO_LABEL",
    "READERS",
    "WRITERS",
    "ExportChoices",
    "FormatError",
    "FormatReader",
    "FormatWriter",
    "Plane",
    "cell",
    "plane_of",
    "reader_of",
    "writer_named",
]
