"""A Zarr hierarchy inside a ZIP archive: its root, and its members by name.

Nothing is unpacked: a slide has as many files as chunks. No codec is imported here.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.archives import open_archive
from ml.imaging.limits import MAX_ZARR_ENTRIES
from ml.types import JsonObject

GROUP_FILES = ("zarr.json", ".zgroup", ".zattrs", ".zarray")
"""Files that mark a folder as part of a hierarchy, of version 3 and of version 2."""
_MAX_JSON_BYTES = 4 * 2**20  # of one description; those of other programs hold some kilobytes
_LOCAL_HEAD = struct.Struct("<4s22xHH")
"""Before a member's bytes: APPNOTE.TXT, 4.3.7."""


def zarr_root(names: Iterable[str]) -> str | None:
    """Root folder of a hierarchy among the names of an archive, "" or with a slash at its end.

    Returns:
        None if there is none.
    Raises:
        UnsupportedFormatError: The archive has several.
    """
    folders = {name[: -len(file)] for name in names for file in GROUP_FILES if _is(name, file)}
    if not folders:
        return None
    depth = min(folder.count("/") for folder in folders)
    roots = sorted(folder for folder in folders if folder.count("/") == depth)
    if len(roots) > 1:
        raise UnsupportedFormatError(
            "the ZIP archive holds several Zarr hierarchies; upload each in an archive of its own"
        )
    return roots[0]


def is_zarr(path: Path) -> bool:
    """Return whether an archive holds a hierarchy. Raises as ``open_archive``."""
    with open_archive(path, max_entries=MAX_ZARR_ENTRIES) as (_, files):
        return zarr_root(entry.filename for entry in files) is not None


def _is(name: str, file: str) -> bool:
    return name == file or name.endswith(f"/{file}")


@contextmanager
def open_zarr(path: Path) -> Iterator[ZarrStore]:
    """Open the hierarchy in an archive.

    Raises:
        UnsupportedFormatError: there is none, or as ``open_archive``.
        CorruptFileError, TooLargeError: as ``open_archive``.
    """
    with open_archive(path, max_entries=MAX_ZARR_ENTRIES) as (archive, files):
        root = zarr_root(entry.filename for entry in files)
        if root is None:
            raise UnsupportedFormatError("the ZIP archive holds no Zarr hierarchy")
        yield ZarrStore(archive, files, root)


class ZarrStore:
    """Members of an archive by their names below the root."""

    def __init__(
        self, archive: zipfile.ZipFile, files: Iterable[zipfile.ZipInfo], root: str
    ) -> None:
        self._archive, self.root = archive, root
        self._entries = {
            entry.filename[len(root) :]: entry for entry in files if entry.filename.startswith(root)
        }

    def __len__(self) -> int:
        return len(self._entries)

    def open(self, name: str) -> IO[bytes]:
        """Open a member that exists."""
        return self._archive.open(self._entries[name])

    def names(self, below: str) -> list[str]:
        """Names of the members of a folder and those below it."""
        return [name for name in self._entries if name.startswith(f"{below}/")]

    def size(self, name: str) -> int | None:
        """Bytes of a member, None if there is none."""
        entry = self._entries.get(name)
        return None if entry is None else entry.file_size

    def read(self, name: str, *, max_bytes: int) -> bytes | None:
        """Read a member, None if there is none.

        Raises:
            TooLargeError: longer than it may be.
            CorruptFileError: damaged.
        """
        entry = self._entries.get(name)
        if entry is None:
            return None
        if entry.file_size > max_bytes:
            raise TooLargeError(
                f"a part of the Zarr hierarchy has {entry.file_size:,} bytes; the limit is "
                f"{max_bytes:,}"
            )
        return self._archive.read(entry)

    def read_part(self, name: str, start: int, size: int) -> bytes:
        """Read some bytes of a member that exists, directly if it is not compressed.

        Raises:
            CorruptFileError: the range is not inside the member.
        """
        entry = self._entries[name]
        if start < 0 or size < 0 or start + size > entry.file_size:
            raise CorruptFileError("a shard of the Zarr hierarchy is damaged")
        if entry.compress_type != zipfile.ZIP_STORED:
            with self._archive.open(entry) as member:
                member.seek(start)
                return member.read(size)
        file: Any = self._archive.fp
        file.seek(entry.header_offset)
        head = file.read(_LOCAL_HEAD.size)
        if len(head) < _LOCAL_HEAD.size or head[:4] != b"PK\3\4":
            raise CorruptFileError("the ZIP archive is truncated or damaged")
        _, name_length, extra_length = _LOCAL_HEAD.unpack(head)
        file.seek(entry.header_offset + _LOCAL_HEAD.size + name_length + extra_length + start)
        data: bytes = file.read(size)
        if len(data) < size:
            raise CorruptFileError("the ZIP archive is truncated or damaged")
        return data

    def json(self, name: str) -> JsonObject | None:
        """Read a JSON member, None if there is none. Raises as ``read``."""
        data = self.read(name, max_bytes=_MAX_JSON_BYTES)
        if data is None:
            return None
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(f"{name.rpartition('/')[2]} of the Zarr is damaged") from error
        if not isinstance(document, dict):
            raise CorruptFileError(f"{name.rpartition('/')[2]} of the Zarr is damaged")
        return document
