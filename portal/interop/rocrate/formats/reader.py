"""A crate from outside, as a zip or a folder: nothing in it is believed before it was checked.

Every file is read in pieces, never longer than the metadata says, and has to have the hash that
is given there. Nothing is unpacked here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ml.errors import MlError
from ml.imaging.formats.archives import enclosing_folder, is_zip, open_archive
from ml.imaging.formats.sniff import read_head
from ml.imaging.limits import MAX_ARCHIVE_ENTRIES
from ml.types import JsonObject
from portal.core.errors import InvalidInputError
from portal.interop.rocrate.formats.writer import CHUNK_BYTES, METADATA, VERSION

MAX_CRATE_BYTES = 2**44  # 16 TiB, beyond any case; the received bytes are checked separately
GROWTH = 200  # rows shrink well: those of frames to a fiftieth; the first 64 MiB are free
METADATA_BYTES = 2**24  # of 20,000 files with 800 bytes each
LINE_BYTES = 2**25  # an outline of 100,000 vertices takes 4 MiB, a track twice as much
DEPTH = 24  # of arrays and objects in a row; the deepest of ours is a mesh's, with five
FOLDERS = 8  # one below the other
_NAME_SHOWN = 80  # characters of a name in a sentence

RECORDS = "records/"

OnBytes = Callable[[int], None]


class CrateError(InvalidInputError):
    """The crate is damaged or was made to do harm; the message names what is wrong."""

    code = "crate"


@dataclass(frozen=True, slots=True)
class CrateFile:
    """A file as the metadata names it: ``sha256`` in hexadecimal."""

    name: str
    size_bytes: int
    sha256: str


class CrateReader:
    """Use as a context manager. Opening it reads and checks names and metadata.

    Args:
        name: of the crate in messages; that of the file unless given.
        on_bytes: Called with the number of bytes read; an exception it raises ends the reading.
    Attributes:
        files: those that the metadata names, which are exactly those that are there.
        identifier: what the crate is of, as ``urn:uuid:...``.

    Raises:
        CrateError: on opening, and from each method that reads.
        OSError: the file or folder cannot be read.
    """

    files: Mapping[str, CrateFile]
    identifier: str

    def __init__(self, path: Path, *, name: str = "", on_bytes: OnBytes = lambda _: None) -> None:
        self._path, self._name, self._on_bytes = path, name or path.name, on_bytes
        self._exits = ExitStack()
        self._open: Callable[[str], BinaryIO]

    def __enter__(self) -> CrateReader:
        try:
            sizes = self._folder() if self._path.is_dir() else self._archive()
            self._read_metadata(sizes)
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def size_bytes(self) -> int:
        """Total size of all files."""
        return sum(file.size_bytes for file in self.files.values())

    def verify(self) -> None:
        """Read every file once: its size, its hash, and of records each line."""
        for name in self.files:
            for _ in self.rows(name) if name.startswith(RECORDS) else self.chunks(name):
                pass

    def passed(self, name: str) -> None:
        """Count a file as read whose bytes are stored already."""
        self._on_bytes(self.files[name].size_bytes)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a file in chunks; its hash is checked after the last one."""
        file = self.files.get(name)
        if file is None:
            raise CrateError(f"The crate lacks {shown(name)}.")
        hashed, size = hashlib.sha256(), 0
        for chunk in self._chunks(name):
            size += len(chunk)
            if size > file.size_bytes:
                raise CrateError(f"{shown(name)} is longer than the metadata says.")
            hashed.update(chunk)
            self._on_bytes(len(chunk))
            yield chunk
        if size != file.size_bytes:
            raise CrateError(f"{shown(name)} is shorter than the metadata says.")
        if hashed.hexdigest() != file.sha256:
            raise CrateError(f"{shown(name)} is damaged: its SHA-256 is not the expected one.")

    def rows(self, name: str) -> Iterator[JsonObject]:
        """The JSON objects of a file, one a line."""
        for number, line in enumerate(self._lines(name), 1):
            where = f"{shown(name)}, line {number}"
            row = json_checked(line, where)
            if not isinstance(row, dict):
                raise CrateError(f"{where}: expected an object.")
            yield row

    def _lines(self, name: str) -> Iterator[bytes]:
        partial_line = b""
        for chunk in self.chunks(name):
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            yield from lines
            if len(partial_line) > LINE_BYTES:
                raise CrateError(f"{shown(name)} has a line of more than {LINE_BYTES:,} bytes.")
        if partial_line:
            raise CrateError(f"{shown(name)} ends within a line.")

    def _chunks(self, name: str) -> Iterator[bytes]:
        try:
            with self._open(name) as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise CrateError(f"{shown(name)} is damaged within the zip.") from error

    def _archive(self) -> dict[str, int]:
        if not is_zip(read_head(self._path)):
            raise CrateError(f"{self._name} is neither a zip nor a folder.")
        opened = open_archive(self._path, max_bytes=MAX_CRATE_BYTES, growth=GROWTH)
        try:
            archive, entries = self._exits.enter_context(opened)
        except MlError as error:
            raise CrateError(f"{self._name}: {error}.") from error
        by_name = {entry.filename: entry for entry in entries}
        folder = enclosing_folder(by_name)  # whoever zips the folder of a crate includes it
        if METADATA not in by_name and f"{folder}{METADATA}" in by_name:
            by_name = {name.removeprefix(folder): entry for name, entry in by_name.items()}
        self._open = lambda name: archive.open(by_name[name])  # type: ignore[assignment,return-value]
        return {name: entry.file_size for name, entry in by_name.items()}

    def _folder(self) -> dict[str, int]:
        self._open = self._open_entry
        return dict(self._walk(self._path, (), [0]))

    def _walk(self, folder: Path, parts: tuple[str, ...], count: list[int]) -> Iterator[Any]:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda path: path.name):
                name = "/".join((*parts, entry.name))
                count[0] += 1
                if count[0] > MAX_ARCHIVE_ENTRIES:
                    raise CrateError(f"The folder holds more than {MAX_ARCHIVE_ENTRIES:,} files.")
                if entry.is_dir(follow_symlinks=False):
                    if len(parts) >= FOLDERS:
                        raise CrateError(f"{shown(name)} is nested too deeply.")
                    yield from self._walk(Path(entry.path), (*parts, entry.name), count)
                elif entry.is_file(follow_symlinks=False):
                    yield name, entry.stat(follow_symlinks=False).st_size
                else:
                    raise CrateError(f"{shown(name)} is a link or not a plain file.")

    def _open_entry(self, name: str) -> BinaryIO:
        """Open a file below the folder; no step of the way may be a link."""
        handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in name.split("/")[:-1]:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            file = os.open(
                name.rsplit("/", maxsplit=1)[-1], os.O_RDONLY | os.O_NOFOLLOW, dir_fd=handle
            )
        except OSError as error:
            raise CrateError(f"{shown(name)} cannot be read: {error.strerror}.") from error
        finally:
            os.close(handle)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise CrateError(f"{shown(name)} is not a plain file.")
        return os.fdopen(file, "rb")

    def _read_metadata(self, sizes: Mapping[str, int]) -> None:
        if METADATA not in sizes:
            raise CrateError(
                f"There is no {METADATA} at the top level, so this is not an RO-Crate."
            )
        data = b""
        for chunk in self._chunks(METADATA):
            data += chunk
            if len(data) > METADATA_BYTES:
                raise CrateError(f"{METADATA} is longer than {METADATA_BYTES:,} bytes.")
        document = json_checked(data, METADATA)
        graph = document.get("@graph") if isinstance(document, dict) else None
        if not isinstance(graph, list) or not all(isinstance(entity, dict) for entity in graph):
            raise CrateError(f"{METADATA}: expected an object with a list @graph of objects.")
        self._read_root(graph)
        self.files = _files(graph)
        for name in sorted({METADATA, *self.files} ^ sizes.keys()):
            where = "is not named in" if name in sizes else "is missing, but named in"
            raise CrateError(f"{shown(name)} {where} {METADATA}.")
        for name, file in self.files.items():
            if sizes[name] != file.size_bytes:
                raise CrateError(
                    f"{shown(name)} has {sizes[name]:,} bytes; {METADATA} says {file.size_bytes:,}."
                )

    def _read_root(self, graph: list[JsonObject]) -> None:
        roots = [entity for entity in graph if entity.get("@id") == "./"]
        if len(roots) != 1:
            raise CrateError(f"{METADATA}: expected one root './', found {len(roots)}.")
        version, identifier = roots[0].get("schemaVersion"), roots[0].get("identifier")
        if version != VERSION:
            raise CrateError(
                f"The crate has version {shown(version)}; this portal reads version {VERSION}.",
                code="crate-version",
            )
        self.identifier = str(identifier)


def json_checked(data: bytes, where: str) -> Any:
    """A JSON value that a database can keep: finite numbers, plain text, not too deep.

    Raises:
        CrateError: begins with ``where``.
    """
    if len(data) > LINE_BYTES:
        raise CrateError(f"{where}: longer than {LINE_BYTES:,} bytes.")
    try:
        value = json.loads(data, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise CrateError(f"{where}: not JSON that can be stored ({str(error)[:120]}).") from error
    level = [value]
    for _ in range(DEPTH):
        inner: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                inner += (*entry, *entry.values())
            elif isinstance(entry, list):
                inner += entry
            elif isinstance(entry, str) and ("\0" in entry or not _is_text(entry)):
                raise CrateError(f"{where}: a text contains characters that are not allowed.")
        level = inner
    if level:
        raise CrateError(f"{where}: nested deeper than {DEPTH}.")
    return value


def shown(name: object) -> str:
    """A name from outside within a sentence: printable, not too long."""
    text = str(name)
    short = text if len(text) <= _NAME_SHOWN else f"{text[:_NAME_SHOWN]}…"
    return short if short.isprintable() else ascii(short)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _is_text(text: str) -> bool:
    """True if the text has no unpaired surrogate."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _files(graph: list[JsonObject]) -> dict[str, CrateFile]:
    files: dict[str, CrateFile] = {}
    for entity in graph:
        if entity.get("@type") != "File":
            continue
        name, size, sha256 = entity.get("@id"), entity.get("contentSize"), entity.get("sha256")
        if not isinstance(name, str) or name in files:
            raise CrateError(f"{METADATA} names {shown(name)} twice, or an entry without a name.")
        if not (isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < 16):
            raise CrateError(f"{METADATA}: {shown(name)} has no size.")
        if not is_sha256(sha256):
            raise CrateError(f"{METADATA}: {shown(name)} has no SHA-256.")
        files[name] = CrateFile(name, int(size), str(sha256))
    return files


def is_sha256(text: object) -> bool:
    """64 hexadecimal digits in lower case."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")
