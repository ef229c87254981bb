"""ZIP archives from users, unpacked so that nothing leaves the folder and nothing grows unbounded.

Every name is checked before the first byte is written: no absolute path, no "..", no link, no name
twice. Declared and actual sizes are bounded.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.limits import MAX_ARCHIVE_ENTRIES, MAX_ARCHIVE_LISTING_BYTES, MAX_UNPACKED_BYTES
from ml.types import Progress, no_progress

FIXED_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of all members, the earliest possible: the same files give the same bytes."""
GROWTH = 20
"""Unpacked bytes for each packed one: a slide's JPEG hardly shrinks. The first 64 MiB are free."""
_FREE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024  # between two checks of the unpacked size
MAX_DEPTH = 12  # folders in folders; Zarr has one for each axis
_MAX_NAME_BYTES = 255  # what file systems take
_SHOWN = 80  # characters of a name in a message
_SYSTEM_NAMES = frozenset(
    {"__macosx", ".ds_store", ".trashes", ".fseventsd", ".spotlight-v100", "thumbs.db"}
    | {"desktop.ini"}
)
"""Folders and files that operating systems add to archives."""
_APPLE_DOUBLE = "._"  # prefix of files with macOS attributes of other files
_IS_FOLDER = 0x10  # of the attributes of MS-DOS
_END, _END_BYTES, _MAX_COMMENT_BYTES = b"PK\x05\x06", 22, 65_535
_LOCATOR, _LOCATOR_BYTES, _ZIP64_END, _ZIP64_END_BYTES = b"PK\x06\x07", 20, b"PK\x06\x06", 56
"""Records of APPNOTE.TXT, 4.3.14 to 4.3.16."""


def is_zip(head: bytes) -> bool:
    """Return whether the first bytes of a file are a ZIP archive with something in it."""
    return head.startswith(b"PK\x03\x04")


@contextmanager
def open_archive(
    file: Path | BinaryIO,
    *,
    max_bytes: int = MAX_UNPACKED_BYTES,
    growth: int = GROWTH,
    max_entries: int = MAX_ARCHIVE_ENTRIES,
) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """Open an archive and list its files, with every name and claim checked and slashes only.

    Args:
        file: a path, or a stream that can seek.
        max_bytes: of all files together, unpacked.
        growth: as ``GROWTH``.
        max_entries: files.
    Raises:
        CorruptFileError: cut or damaged.
        TooLargeError: more entries or bytes than the limits.
        UnsupportedFormatError: it holds a path out of it, a link, a name twice, or is encrypted.
    """
    if isinstance(file, Path):
        with (
            file.open("rb") as opened,
            open_archive(
                opened, max_bytes=max_bytes, growth=growth, max_entries=max_entries
            ) as contents,
        ):
            yield contents
        return
    packed = _check_listing(file, max_entries)
    try:
        with zipfile.ZipFile(file) as archive:
            files = [entry for entry in archive.infolist() if not _is_ignored(entry)]
            _check(files, packed, min(max_bytes, _FREE_BYTES + growth * packed), max_entries)
            for entry in files:  # normalised names, so that they match whatever system wrote them
                entry.filename = "/".join(_parts(entry.filename))
            yield archive, files
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError),
        UnicodeDecodeError,  # from the name in a member's local header, which is decoded on reading
    ) as error:
        raise CorruptFileError("the ZIP archive is truncated or damaged") from error


def enclosing_folder(names: Iterable[str]) -> str:
    """Common top folder of all names of an archive, with a slash at its end; "" without one."""
    folders = {name.split("/", 1)[0] if "/" in name else "" for name in names}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""


def unpack(path: Path, folder: Path, progress: Progress = no_progress) -> None:
    """Write an archive's files below ``folder``, creating it. Raises as ``open_archive``."""
    with open_archive(path) as (archive, files):
        total = sum(entry.file_size for entry in files)
        unpacked_bytes = 0
        for entry in files:
            target = folder.joinpath(*_parts(entry.filename))
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, _create_file(target) as out:
                written = 0
                while chunk := source.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > entry.file_size:
                        raise CorruptFileError("the ZIP archive holds more than it declares")
                    os.write(out, chunk)
                    progress((unpacked_bytes + written) * 100 // max(total, 1), 100, "unpacking")
            unpacked_bytes += written


def pack(members: Iterable[tuple[str, Path]]) -> Iterator[bytes]:
    """Pack files, given with their names in the archive, without compression, in pieces.

    Raises:
        OSError: a file cannot be read.
    """
    buffer = _WriteBuffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, path in members:
            info = zipfile.ZipInfo(name, date_time=FIXED_DATE)
            with path.open("rb") as plain, archive.open(info, "w", force_zip64=True) as packed:
                while chunk := plain.read(_CHUNK_BYTES):
                    packed.write(chunk)
                    yield buffer.take()
    yield buffer.take()


class _WriteBuffer(io.RawIOBase):
    """Buffer of written bytes, emptied by ``take``."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _check_listing(file: BinaryIO, max_entries: int) -> int:
    """Reject a listing that is too long before reading it; return the file's size in bytes."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _END_BYTES - _MAX_COMMENT_BYTES)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise CorruptFileError("the ZIP archive is truncated: its list of files is missing")
    entries, listing = struct.unpack_from("<HI", tail, at + 10)
    file.seek(max(0, start + at - _LOCATOR_BYTES))
    locator = file.read(_LOCATOR_BYTES)
    if locator.startswith(_LOCATOR) and len(locator) == _LOCATOR_BYTES:
        end_at = struct.unpack_from("<Q", locator, 8)[0]
        file.seek(min(end_at, size))
        record = file.read(_ZIP64_END_BYTES)
        if not record.startswith(_ZIP64_END) or len(record) < _ZIP64_END_BYTES:
            raise CorruptFileError("the ZIP archive is damaged: its list of files is missing")
        entries, listing = struct.unpack_from("<QQ", record, 32)
    max_bytes = MAX_ARCHIVE_LISTING_BYTES * max(1, max_entries // MAX_ARCHIVE_ENTRIES)
    if entries > max_entries or listing > max_bytes:
        raise TooLargeError(
            f"the ZIP archive lists {entries:,} files in {listing:,} bytes; the limit is "
            f"{max_entries:,} files in {max_bytes:,} bytes"
        )
    return size


def _check(files: list[zipfile.ZipInfo], packed_bytes: int, limit: int, max_entries: int) -> None:
    _check_names(files)
    for entry in files:
        if not 0 <= entry.header_offset < packed_bytes:
            raise CorruptFileError("the ZIP archive is damaged: its list points outside the file")
        mode = entry.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise UnsupportedFormatError(
                f"the ZIP archive holds a link, {_printable_name(entry.filename)}; "
                "expected plain files"
            )
        if entry.flag_bits & 1:
            raise UnsupportedFormatError("the ZIP archive is encrypted; expected a plain one")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnsupportedFormatError(
                "the ZIP archive uses an unsupported compression; expected stored or deflated files"
            )
    total = sum(entry.file_size for entry in files)
    if len(files) > max_entries or total > limit:
        raise TooLargeError(
            f"the ZIP archive of {packed_bytes:,} bytes would unpack to {len(files):,} files of "
            f"{total:,} bytes; the limit is {limit:,} bytes"
        )


def _check_names(files: list[zipfile.ZipInfo]) -> None:
    """Reject names that occur twice, ignoring case, or as a file and a folder."""
    names = [tuple(part.casefold() for part in _parts(entry.filename)) for entry in files]
    folders = {name[:depth] for name in names for depth in range(1, len(name))}
    used_names: set[tuple[str, ...]] = set()
    for name in names:
        if name in used_names or name in folders:
            text = _printable_name("/".join(name))
            raise UnsupportedFormatError(f"the ZIP archive holds the same name twice: {text}")
        used_names.add(name)


def _parts(name: str) -> tuple[str, ...]:
    """Folders and name of an entry, by slashes or backslashes."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if not parts or plain.startswith("/") or ".." in parts or ":" in parts[0]:
        raise UnsupportedFormatError(
            f"the ZIP archive holds a path that leads outside it: {_printable_name(name)}"
        )
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in plain):
        raise UnsupportedFormatError(
            f"the ZIP archive holds a name with control characters: {_printable_name(name)}"
        )
    if len(parts) > MAX_DEPTH or any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in parts):
        raise UnsupportedFormatError("the ZIP archive holds a path that is too long")
    return parts


def _printable_name(name: str) -> str:
    return ascii(name[:_SHOWN])


def _is_ignored(entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a folder, or was added by a system and not by a person."""
    plain = entry.filename.replace("\\", "/")
    if plain.endswith("/") or (entry.external_attr & _IS_FOLDER and not entry.file_size):
        return True
    parts = plain.casefold().split("/")
    return parts[-1].startswith(_APPLE_DOUBLE) or not _SYSTEM_NAMES.isdisjoint(parts)


@contextmanager
def _create_file(target: Path) -> Iterator[int]:
    """Create a file; never replace one or follow a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        handle = os.open(target, flags, 0o640)
    except FileExistsError as error:  # a file system to which two names are the same
        raise UnsupportedFormatError("the ZIP archive holds the same name twice") from error
    try:
        yield handle
    finally:
        os.close(handle)
