"""Slides of several files: found in a folder, and sent as one archive.

The archive is never written to disk: each piece is read from the files when it is sent. The same
files give the same bytes, so that a transfer can be resumed and a duplicate recognised.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tessera_client.errors import InvalidError

_INDEXES = (".mrxs", ".vms", ".vmu")
_NAMED = re.compile(
    r"^[ \t]*(INDEXFILE|FILE_\d+|ImageFile(?:\([\d,]+\))?|MapFile|OptimisationFile|MacroImage)"
    r"[ \t]*=[ \t]*(.*?)[ \t\r]*$",
    re.MULTILINE,
)
"""Lines of an index of MRXS or VMS that name other files."""
_OPTIONAL_KEYS = ("OptimisationFile", "MacroImage")
_DICOM_SLIDE = b"1.2.840.10008.5.1.4.1.1.77.1.6"  # the class of whole-slide images
_HEAD_BYTES = 1024  # a DICOM object states its SOP class within these bytes
_GROUP_FILES = ("zarr.json", ".zgroup", ".zattrs", ".zarray")
"""Files that mark a folder as part of a Zarr hierarchy."""
_READ_BYTES = 2**20  # at once
_LONG, _DAY = 0xFFFFFFFF, 0x21  # "see the long field", and the first day of 1980
_VERSION, _UTF8, _PLAIN_FILE = 45, 0x0800, 0o100644 << 16
"""Zip fields (APPNOTE.TXT, 4.4): 64-bit sizes, names in UTF-8, a regular file."""


@dataclass(frozen=True, slots=True)
class PackedSet:
    """An archive of files, used like a ``LocalFile``, whose bytes are made on reading.

    Attributes:
        path: nominal path of the archive.
        size, sha256: of the archive.
        parts: bytes, or paths of files, each with its size, in order.
    """

    path: Path
    size: int
    sha256: str
    parts: tuple[tuple[bytes | Path, int], ...]

    @classmethod
    def of(cls, path: Path, files: Iterable[Path]) -> PackedSet:
        """Read all files twice: for their checksums, and for that of the archive.

        Args:
            path: the file or folder that is sent.
            files: all its files, next to or below it.
        Raises:
            OSError: one cannot be read.
        """
        named_files = sorted((file.relative_to(path.parent).as_posix(), file) for file in files)
        parts = tuple(_parts(named_files))  # in the order of names, as the portal's page packs them
        digest = hashlib.sha256()
        for part, size in parts:
            for chunk in _read(part, 0, size):
                digest.update(chunk)
        size = sum(one for _, one in parts)
        name = path.name if path.is_dir() else path.stem
        return cls(path.with_name(f"{name}.zip"), size, digest.hexdigest(), parts)

    def bytes_from(self, offset: int, max_bytes: int) -> bytes:
        """At most ``max_bytes`` bytes from ``offset`` on."""
        found: list[bytes] = []
        for part, size in self.parts:
            if offset < size and max_bytes:
                chunks = list(_read(part, offset, min(size - offset, max_bytes)))
                found += chunks
                max_bytes -= sum(map(len, chunks))
                offset = size
            offset -= size
        return b"".join(found)


def set_of(path: Path) -> list[Path] | None:
    """List the files of a slide of several files, by the path to send; None for a single file.

    Args:
        path: an ``.mrxs``, ``.vms`` or ``.vmu``, or a folder with one of these, with the objects of
            a DICOM series, or with an OME-Zarr; or an OME-Zarr itself.
    Raises:
        InvalidError: a file of it is missing, or a folder holds no such slide, or several.
    """
    if _is_zarr(path):
        return list(_members_of_zarr(path))
    if path.is_dir():
        found = [
            one for one in find_uploads(path) if one.is_dir() or one.suffix.lower() in _INDEXES
        ]
        if len(found) != 1:
            examples = ", ".join(one.name for one in found[:5]) or "none"
            raise InvalidError(
                f"{path} has to hold one slide of several files; found {examples}", code="set"
            )
        return _objects(path) if found[0] == path else set_of(found[0])
    return _members(path) if path.suffix.lower() in _INDEXES else None


def find_uploads(folder: Path) -> list[Path]:
    """List the uploads of a folder in natural order of names.

    These are the main file of each set (for a DICOM series or an OME-Zarr its folder), and all
    other files.
    """
    paths = list(_files(folder))
    zarrs, files = [one for one in paths if one.is_dir()], [one for one in paths if one.is_file()]
    mains = [file for file in files if file.suffix.lower() in _INDEXES]
    indexed: set[Path] = set()
    for main in mains:
        indexed |= {main, *_indexed_files(main)[0]}
        if main.suffix.lower() == ".mrxs":
            indexed |= {file for file in files if main.with_suffix("") in file.parents}
    unindexed = [file for file in files if file not in indexed]
    series = {file.parent for file in unindexed if _is_dicom_slide(file)}
    singles = (one for one in unindexed if not _is_of(one, series))
    return sorted([*zarrs, *mains, *series, *singles], key=_natural_key)


def _natural_key(path: Path) -> tuple[object, ...]:
    """Sorting key that compares numbers as numbers: frame_2 before frame_10."""
    names = [*path.parts[:-1], path.stem]
    chunks = [re.split(r"([0-9]+)", name.casefold()) for name in names]
    numbers = [[int(one) if i % 2 else one for i, one in enumerate(name)] for name in chunks]
    return numbers, path.suffix.casefold(), path.parts


def _is_of(file: Path, series: set[Path]) -> bool:
    return file.parent in series and _is_dicom_slide(file)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir() and not _is_zarr(path):
            yield from _files(path)
        else:
            yield path


def _is_zarr(path: Path) -> bool:
    return any((path / name).is_file() for name in _GROUP_FILES)


def _members_of_zarr(folder: Path) -> Iterator[Path]:
    """Files of a Zarr, including the hidden ones in ``_GROUP_FILES``."""
    for path in folder.iterdir():
        if path.is_symlink() or (path.name.startswith(".") and path.name not in _GROUP_FILES):
            continue
        if path.is_dir():
            yield from _members_of_zarr(path)
        else:
            yield path


def _objects(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and _is_dicom_slide(file)]


def _is_dicom_slide(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return head[128:132] == b"DICM" and _DICOM_SLIDE in head


def _members(main: Path) -> list[Path]:
    indexed, missing = _indexed_files(main)
    if missing:
        first = missing[0].relative_to(main.parent).as_posix()
        raise InvalidError(f"{main.name} is incomplete: {first} is missing", code="incomplete-set")
    inner = list(_files(main.with_suffix(""))) if main.suffix.lower() == ".mrxs" else []
    return [main, *dict.fromkeys([*indexed, *inner])]


def _indexed_files(main: Path) -> tuple[list[Path], list[Path]]:
    """Files named by an index: existing ones, and required ones that are missing."""
    index = main.with_suffix("") / "Slidedat.ini" if main.suffix.lower() == ".mrxs" else main
    if not index.is_file():
        return [], [index]
    text = index.read_bytes().decode("utf-8", "surrogateescape")
    existing: list[Path] = []
    missing: list[Path] = []
    for key, name in _NAMED.findall(text):
        file = Path(f"{index.parent}/{name}")  # below its folder, even with a slash in front
        if name and _is_file(file) and main.parent.resolve() in file.resolve().parents:
            existing.append(file)
        elif name and key not in _OPTIONAL_KEYS:
            missing.append(file)
    return existing, missing


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # the name is too long
        return False


def _parts(files: list[tuple[str, Path]]) -> Iterator[tuple[bytes | Path, int]]:
    """A ZIP archive with sizes of 64 bits throughout: APPNOTE.TXT, 4.3. Nothing is compressed."""
    listing, at = b"", 0
    for plain, file in files:
        name = plain.encode("utf-8", "replace")
        size, checksum = file.stat().st_size, 0
        for chunk in _read(file, 0, size):
            checksum = zlib.crc32(chunk, checksum)
        about = struct.pack("<HHHHHIII", _VERSION, _UTF8, 0, 0, _DAY, checksum, _LONG, _LONG)
        head = b"PK\3\4" + about + struct.pack("<HH", len(name), 20) + name
        head += struct.pack("<HHQQ", 1, 16, size, size)
        listing += b"PK\1\2" + struct.pack("<H", 3 << 8 | _VERSION) + about
        listing += struct.pack("<HHHHHII", len(name), 28, 0, 0, 0, _PLAIN_FILE, _LONG) + name
        listing += struct.pack("<HHQQQ", 1, 24, size, size, at)
        yield head, len(head)
        yield file, size
        at += len(head) + size
    count, end = len(files), at + len(listing)
    tail = b"PK\6\6" + struct.pack("<QHHIIQQ", 44, _VERSION, _VERSION, 0, 0, count, count)
    tail += struct.pack("<QQ", len(listing), at) + b"PK\6\7" + struct.pack("<IQI", 0, end, 1)
    tail += b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, _LONG, _LONG, 0)
    yield listing + tail, len(listing) + len(tail)


def _read(part: bytes | Path, offset: int, size: int) -> Iterator[bytes]:
    """``size`` bytes of a part.

    Raises:
        OSError: a file has become shorter.
    """
    if isinstance(part, bytes):
        yield part[offset : offset + size]
        return
    with part.open("rb") as file:
        file.seek(offset)
        while size:
            chunk = file.read(min(size, _READ_BYTES))
            if not chunk:
                raise OSError(f"{part} has become shorter while it was sent")
            yield chunk
            size -= len(chunk)
