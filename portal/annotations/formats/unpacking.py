"""Documents inside gzip files and ZIP archives, and in other encodings than UTF-8.

Each is written to a temporary file of UTF-8 once, piece by piece, within bounds on its size; after
that it is read as a plain document is.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from ml.errors import MlError
from ml.imaging.formats.archives import is_zip, open_archive
from ml.natural_order import natural_key
from portal.annotations.formats.registry import AUTO, reader_of
from portal.annotations.formats.sniffing import HEAD_BYTES
from portal.annotations.formats.types import FormatError, FormatReader
from portal.annotations.qupath import one_line

MAX_BYTES = 2 * 2**30
"""Limit for all documents of an import: a million outlines of a hundred vertices."""
GROWTH = 200
"""Unpacked bytes for each packed one: coordinates shrink to a fifth, a mask of runs to a fiftieth.
The first 64 MiB are free."""
MAX_DOCUMENTS = 1_000  # of an archive; each is a temporary file
_FREE_BYTES = 64 * 2**20
_PIECE_BYTES = 2**20
_IN_MEMORY_BYTES = 4 * 2**20
_GZIP = b"\x1f\x8b"
_SHOWN = 80  # characters of a name in a message
_NAMES_SHOWN = 3
_DECLARATION = re.compile(r"\s*<\?xml\b[^>]*\?>")
_CLAIMS_UTF_16 = re.compile(rb"\s*<\?xml\b[^>]*encoding=[\"']utf-?16[\"']", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is read.

    Attributes:
        name: inside its archive; empty outside of one.
        stream: UTF-8, seekable.
    """

    name: str
    stream: IO[bytes]
    reader: FormatReader


@dataclass(slots=True)
class _Unpacking:
    """Budget of bytes to unpack, and names of entries that were not read.

    Attributes:
        left_bytes: of all documents together.
    """

    format_name: str
    left_bytes: int
    documents: list[Document] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def documents_open(
    stream: IO[bytes], *, format_name: str = AUTO
) -> tuple[list[Document], list[str]]:
    """The documents of a file in natural order of names, and the names of its other files.

    Args:
        stream: seekable: a document, a gzip file of one, or a ZIP archive of some of either.
        format_name: the format that they are of; else it is recognised by their content.
    Raises:
        FormatError: it holds no document that is read, is damaged, or unpacks to too much.
    """
    size = stream.seek(0, 2)
    unpacking = _Unpacking(format_name, min(MAX_BYTES, _FREE_BYTES + GROWTH * size))
    head = _head(stream)
    if is_zip(head):
        _open_archive(stream, unpacking)
        if not unpacking.documents:
            names = ", ".join(unpacking.unread[:_NAMES_SHOWN]) or "no file at all"
            raise FormatError(
                f"The ZIP archive holds no document of a supported format: it holds {names}.",
                code="unknown-format",
            )
        return unpacking.documents, unpacking.unread
    plain = _plain(stream, head, unpacking)
    return [Document("", plain, reader_of(plain, format_name=format_name))], []


def _open_archive(stream: IO[bytes], unpacking: _Unpacking) -> None:
    try:
        with open_archive(cast(Any, stream), max_bytes=MAX_BYTES, growth=GROWTH) as (
            archive,
            entries,
        ):
            for entry in sorted(entries, key=lambda zip_entry: natural_key(zip_entry.filename)):
                with archive.open(entry) as packed:
                    _take(one_line(entry.filename)[:_SHOWN], packed, unpacking)
    except MlError as error:
        raise FormatError(f"{str(error)[:1].upper()}{str(error)[1:]}.", code=error.code) from None


def _take(name: str, packed: IO[bytes], unpacking: _Unpacking) -> None:
    """Open a member of an archive, if its first bytes are those of a document."""
    head = packed.read(HEAD_BYTES)
    if not _is_document(head, unpacking.format_name):
        unpacking.unread.append(name)
        return
    if len(unpacking.documents) >= MAX_DOCUMENTS:
        raise FormatError(f"The ZIP archive holds more than {MAX_DOCUMENTS:,} documents.")
    content = _temporary([head], packed, unpacking)
    plain = _plain(content, head, unpacking)
    unpacking.documents.append(
        Document(name, plain, reader_of(plain, format_name=unpacking.format_name))
    )


def _is_document(head: bytes, format_name: str) -> bool:
    """Return whether a document begins so, perhaps packed by gzip, or in UTF-16."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return False
    text = head.decode(_encoding(head), "ignore").encode()
    start = text.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if format_name != AUTO:
        return start in (b"{", b"[", b"<")
    try:
        with SpooledTemporaryFile() as file:
            file.write(text)
            reader_of(cast(IO[bytes], file))
    except FormatError:
        return False
    return True


def _plain(stream: IO[bytes], head: bytes, unpacking: _Unpacking) -> IO[bytes]:
    """The text of a document as UTF-8: the same stream where it is that already."""
    if head.startswith(_GZIP):
        try:
            stream.seek(0)
            with gzip.GzipFile(fileobj=stream, mode="rb") as packed:
                stream = _temporary([], cast(IO[bytes], packed), unpacking)
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
                raise
            raise FormatError(
                "The gzip file is truncated or damaged. Pack the document again.",
                code="corrupt-file",
            ) from None
        head = _head(stream)
    encoding = _encoding(head)
    if encoding == "utf-8" and not _CLAIMS_UTF_16.match(head):
        stream.seek(0)
        return stream
    return _temporary(_decode(stream, encoding), None, unpacking)


def _encoding(head: bytes) -> str:
    """Encoding by byte order mark or zero bytes; XML declarations are left to the parser."""
    encoding = json.detect_encoding(head[:4])
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _decode(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """UTF-8, without the declaration of an encoding that it no longer has."""
    decoder = codecs.getincrementaldecoder(encoding)()
    stream.seek(0)
    is_first = True
    try:
        while piece := stream.read(_PIECE_BYTES):
            text = decoder.decode(piece)
            yield (_DECLARATION.sub("", text, count=1) if is_first else text).encode()
            is_first = False
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError:
        raise FormatError(
            f"The document's text is damaged: it is not {encoding.upper()} throughout.",
            code="corrupt-file",
        ) from None


def _temporary(
    pieces: Iterator[bytes] | list[bytes], remainder: IO[bytes] | None, unpacking: _Unpacking
) -> IO[bytes]:
    file = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - outlives this call

    def write(piece: bytes) -> None:
        unpacking.left_bytes -= len(piece)
        if unpacking.left_bytes < 0:
            file.close()
            raise FormatError(
                "The file unpacks to more than is read: at most "
                f"{MAX_BYTES // 2**30} GiB, and {GROWTH} times its size.",
                code="too-large",
            )
        file.write(piece)

    for piece in pieces:
        write(piece)
    while remainder is not None and (piece := remainder.read(_PIECE_BYTES)):
        write(piece)
    file.seek(0)
    return cast(IO[bytes], file)


def _head(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read(HEAD_BYTES)
