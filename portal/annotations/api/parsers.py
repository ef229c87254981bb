"""Bodies with geometry: NaN passes the parser, so that the refusal can name its vertex."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from rest_framework.parsers import BaseParser

from portal.annotations.formats.unpacking import MAX_BYTES
from portal.core.api.parsers import BoundedJsonParser
from portal.core.errors import TooLargeInputError

OUTLINE_BYTES = 16 * 2**20  # an ROI; a GeoJSON of 200,000 vertices is about 8 MB
STEPS_BYTES = 32 * 2**20  # many changes at once
STEPS_VALUES = 4_000_000  # 10,000 outlines of a hundred vertices
_IN_MEMORY_BYTES = 4 * 2**20  # a longer document goes to a temporary file
_PIECE_BYTES = 2**20  # read at a time


class GeometryJsonParser(BoundedJsonParser):
    """``application/json`` with NaN and Infinity."""

    allows_nan = True


class FileParser(BaseParser):
    """Body of any media type as an unparsed file; the importer detects the format."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Copy the body to a temporary file, in memory while small, and rewind it."""
        file = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - outlives this call
        size = 0
        while piece := stream.read(_PIECE_BYTES):
            size += len(piece)
            if size > MAX_BYTES:
                file.close()
                raise TooLargeInputError(f"At most {MAX_BYTES // 2**30} GiB in one document.")
            file.write(piece)
        file.seek(0)
        return file
