"""Files of the storage: originals by content, what is derived from them, what is only cached.

Their places are declared in ``portal.core.storage_layout``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from io import RawIOBase
from pathlib import Path
from typing import Any

from django.conf import settings

from ml.files import sync_folder, write_bytes
from portal.archive.storage.folder_store import FolderStore
from portal.archive.storage.s3_store import S3Settings, S3Store
from portal.archive.storage.store import Store
from portal.core.disk import full_disk_refused, has_room, require_room
from portal.core.errors import StorageFullError, TooLargeInputError
from portal.core.storage_layout import Place, entries_of, ids_in, root

ASSETS, IDENTITY = Place.ASSETS.folder_name, Place.IDENTITY.folder_name
ROOM_EVERY_BYTES = 16 * 2**20  # how often a transfer looks whether there is still room
CHUNK_BYTES = 2**20  # large enough that reading is not bound by calls


def the_store() -> Store:
    """The configured store of originals."""
    return store_at(root(), s3_settings())


def store_at(folder: Path, bucket: S3Settings | None) -> Store:
    """The store of an installation whose storage is this folder."""
    if bucket is None:
        return FolderStore(folder)
    return _bucket(bucket, folder / Place.FETCHED.folder_name, os.getpid())


def s3_settings() -> S3Settings | None:
    """Settings of the bucket of originals; None if they are stored in a folder."""
    values: dict[str, Any] | None = settings.TESSERA_S3
    return S3Settings(**values) if values else None


@cache
def _bucket(bucket: S3Settings, copies: Path, _process: int) -> Store:
    """One for each process: connections do not survive a fork."""
    return S3Store(bucket, copies)


def asset_name(lab_id: uuid.UUID, sha256: str) -> str:
    """An asset's name in the store; labs never share a file, even of the same content."""
    return f"{ASSETS}/{lab_id}/{sha256[:2]}/{sha256}"


def asset_of(name: str) -> tuple[uuid.UUID, str] | None:
    """Lab and SHA-256 from the name of an asset; None for other names."""
    parts = name.split("/")
    try:
        return uuid.UUID(parts[-3]), parts[-1]
    except (ValueError, IndexError):
        return None


def asset_path(lab_id: uuid.UUID, sha256: str) -> Path:
    """A local file with an asset's bytes, as ``resolve``."""
    return resolve(asset_name(lab_id, sha256))


def derived_folder(item_id: uuid.UUID) -> Path:
    """Folder of files derived from a slide, a video, a mosaic or a follow-up, by its id."""
    return Place.DERIVED.path(item_id)


def cache_folder(canvas_id: uuid.UUID) -> Path:
    """Decoded tiles and frames of a canvas."""
    return Place.CACHE.path(canvas_id)


def relative(path: Path) -> str:
    """Path as stored in the database."""
    return path.relative_to(root()).as_posix()


def is_original(path: str) -> bool:
    """Return whether a path in the database is that of an original in the store."""
    return path.startswith(f"{ASSETS}/")


def resolve(path: str) -> Path:
    """Local file of a path in the database, to be opened now.

    An original in a bucket is fetched first if there is no copy of it.

    Raises:
        StoreAwayError, FileNotFoundError: It cannot be fetched.
    """
    return the_store().local(path) if is_original(path) else root() / path


class Incoming:
    """A file being received: hashed as it is written, never longer than the limit.

    A context manager: what the store did not take over is deleted on leaving.
    """

    def __init__(self, name: str | None = None) -> None:
        require_room()
        self.size_bytes = 0
        self._checked_bytes = 0
        self._hash = hashlib.sha256()
        with full_disk_refused():
            self.path = incoming_path(name or str(uuid.uuid4()))
            self._file = self.path.open("wb", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # held while the file is being written

    def write(self, chunk: bytes) -> None:
        """Append; ``TooLargeInputError`` beyond the limit, ``StorageFullError`` without room."""
        self.size_bytes += len(chunk)
        require_size(self.size_bytes)
        if self.size_bytes - self._checked_bytes >= ROOM_EVERY_BYTES:
            self._checked_bytes = self.size_bytes
            require_room()
        self._hash.update(chunk)
        with full_disk_refused():
            write_whole(self._file, chunk)

    def write_all(self, chunks: Iterable[bytes]) -> None:
        """Append every chunk."""
        for chunk in chunks:
            self.write(chunk)

    @property
    def sha256(self) -> str:
        """Hash of the bytes written so far, in hexadecimal digits."""
        return self._hash.hexdigest()

    def seal(self) -> None:
        """Write the bytes to the disk (fsync)."""
        if not self._file.closed:
            with full_disk_refused():
                os.fsync(self._file.fileno())

    def discard(self) -> None:
        """Close the file, and delete it unless it was moved; may be called twice."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def write_whole(file: RawIOBase, data: bytes) -> None:
    """Write all of it. Nothing is buffered, so that closing an abandoned file has nothing left to
    write to a disk that is full.
    """
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[file.write(unwritten) or 0 :]


def incoming_path(name: str) -> Path:
    """File that collects an upload's bytes."""
    Place.INCOMING.folder.mkdir(parents=True, exist_ok=True)
    return Place.INCOMING.path(name)


def incoming_abandoned(upload_ids: Collection[str]) -> list[Path]:
    """Received files that no row names and no process has open: left by one that was killed.

    Args:
        upload_ids: ids of the transfers that have a row.
    """
    return [
        path
        for path in Place.INCOMING.entries()
        if ids_in(path.name).isdisjoint(upload_ids) and _is_abandoned(path)
    ]


def _is_abandoned(path: Path) -> bool:
    """Return whether a file has bytes and no process has locked it."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.fstat(file.fileno()).st_size > 0
    except OSError:
        return False


def limit_bytes() -> int:
    """Most bytes of one file."""
    return int(settings.TESSERA_UPLOAD_MAX_BYTES)


def require_size(size_bytes: int) -> None:
    """Refuse more than ``TESSERA_UPLOAD_MAX_BYTES``, naming the limit."""
    limit = limit_bytes()
    if size_bytes > limit:
        raise TooLargeInputError(
            f"The file is larger than this portal accepts: the limit is {limit:,} bytes"
            f" ({human_size(limit)}).",
            details={"limit_bytes": limit},
        )


def human_size(size_bytes: int) -> str:
    """``1.5 GiB``."""
    size, units = float(size_bytes), ("bytes", "KiB", "MiB", "GiB")
    for unit in units:
        if size < 1024 or unit == units[-1]:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_publish(folder: Path, target: Path) -> None:
    """Put a finished folder in place; one that an earlier attempt left there gives way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix="replaced-", dir=folder.parent))
        target.replace(old / "old")
    folder.replace(target)
    sync_folder(target.parent)


def folder_drop(folder: Path) -> None:
    """Delete a derived or cached folder."""
    shutil.rmtree(folder, ignore_errors=True)


def entries_drop(ids: Collection[str]) -> None:
    """Delete every file and folder, in any place, that is named by one of these ids."""
    for path in entries_of(ids):
        entry_drop(path)


def entry_drop(path: Path) -> None:
    """Delete a file or a folder; what cannot be deleted stays, and is found by who looks."""
    if path.is_dir() and not path.is_symlink():
        folder_drop(path)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def file_publish(target: Path, data: bytes) -> None:
    """Write a cached file so that a reader sees all of it or nothing.

    Where the disk has no room it is left out: what is only cached can be made again.
    """
    if not has_room():
        return
    with suppress(StorageFullError), full_disk_refused():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, data)
