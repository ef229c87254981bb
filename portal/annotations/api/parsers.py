"""Bodies with geometry: NaN passes the parser, so that the refusal can name its vertex."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from rest_framework.parsers import BaseParser

from portal.annotations.documents import features_read
from portal.core.api.parsers import BoundedJsonParser
from portal.core.errors import TooLargeInputError

DOCUMENT_BYTES = 2 * 2**30  # a million outlines of a hundred vertices
_IN_MEMORY_BYTES = 4 * 2**20
_PIECE_BYTES = 2**20


class GeometryJsonParser(BoundedJsonParser):
    """``application/json`` with NaN and Infinity."""

    allows_nan = True


class Document:
    """A document as it came, on disk where it is large; each call reads it from its beginning."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __call__(self) -> Iterator[Any]:
        """Its features."""
        self._file.seek(0)
        yield from features_read(self._file)


class DocumentParser(BaseParser):
    """``application/json`` as a ``Document``: nothing is parsed yet."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """A ``Document`` of the body; its file goes with the request."""
        file = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - outlives this call
        size = 0
        while piece := stream.read(_PIECE_BYTES):
            size += len(piece)
            if size > DOCUMENT_BYTES:
                file.close()
                raise TooLargeInputError(f"At most {DOCUMENT_BYTES // 2**30} GiB in one document.")
            file.write(piece)
        return Document(file)


class GeoJsonParser(DocumentParser):
    """The same for ``application/geo+json``."""

    media_type = "application/geo+json"
