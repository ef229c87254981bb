"""Free space on the storage volume: a floor for uploads and jobs, and a reserve for records.

Uploads, jobs and caches stop at the floor, so that records can be written long after. Other
programs may still fill the disk; against them there is the reserve: a file next to the records
that is deleted when no space is left, and created again once there is space.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from portal.core.errors import StorageFullError, error_chain
from portal.core.storage_layout import Place, root

logger = logging.getLogger(__name__)

RESERVE = Place.RESERVE.folder_name  # in the folder of the records or in the storage

FLOOR_BYTES = 2 * 2**30  # enough to write records, which are small, for a long time
FLOOR_SHARE = 0.05  # limit on small volumes
LAST_BYTES = 8 * 2**20  # a database may fail to write with less; the reserve is deleted
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("disk is full", "no space left", "disk full", "quota exceeded")
_SQLITE_WORDS = (
    "disk i/o error",
    "unable to open database file",
)  # possible messages of a full disk
MESSAGE = (
    "The portal's disk is full. Nothing was stored; what is already there is safe. Tell the IT "
    "people of your lab."
)


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written below a folder, which need not exist yet."""
    return shutil.disk_usage(_existing(folder)).free


def floor_bytes() -> int:
    """Free space that uploads and jobs must leave: as configured, or 2 GiB, at most 5 %."""
    configured = int(settings.TESSERA_STORAGE_FLOOR_BYTES)
    if configured:
        return configured
    total = shutil.disk_usage(_existing(root())).total
    return min(FLOOR_BYTES, int(total * FLOOR_SHARE))


def require_room(size_bytes: int = 0) -> None:
    """Require room for ``size_bytes`` more on the storage volume.

    Raises:
        StorageFullError: Less than the floor would remain.
    """
    left = free_bytes(root()) - floor_bytes()
    if size_bytes > left or left <= 0:
        raise StorageFullError(MESSAGE, details={"room_bytes": max(0, left)})


def has_room(size_bytes: int = 0) -> bool:
    """Return whether the storage volume has room above the floor."""
    try:
        require_room(size_bytes)
    except StorageFullError:
        return False
    return True


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes means that a disk is full."""
    for cause in error_chain(error):
        if isinstance(cause, StorageFullError):
            return True
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return True
        if isinstance(cause, DatabaseError) and _says_full(str(cause).lower()):
            return True
    return False


@contextmanager
def full_disk_refused() -> Iterator[None]:
    """Convert errors of a full disk to ``StorageFullError``."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise StorageFullError(MESSAGE) from error


def reserve_path() -> Path:
    """Path of the reserve: next to an SQLite database, else on the storage volume."""
    name = str(connection.settings_dict["NAME"])
    is_file = connection.vendor == "sqlite" and name and not name.startswith((":memory:", "file:"))
    folder = Path(name).parent if is_file else root()
    return folder / RESERVE


def reserve_keep() -> bool:
    """Create the reserve if there is room for it, or delete it if the disk is full.

    Returns:
        Whether the reserve exists now.
    """
    path, size = reserve_path(), int(settings.TESSERA_RESERVE_BYTES)
    reserve_release()
    if path.exists() or not size:
        return path.exists()
    spare = max(floor_bytes(), 2 * LAST_BYTES)
    if not path.parent.is_dir() or free_bytes(path.parent) < spare + size:
        return False
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        temporary.replace(path)
    except OSError:
        logger.warning("the reserve cannot be created", exc_info=True)
    finally:
        temporary.unlink(missing_ok=True)
    return path.exists()


def reserve_release() -> None:
    """Delete the reserve if the disk is almost full; cheap enough for every write."""
    path = reserve_path()
    try:
        if free_bytes(path.parent) < LAST_BYTES and path.exists():
            path.unlink(missing_ok=True)
            logger.error("the disk is full: the reserve was deleted to make room for records")
    except OSError:
        logger.exception("the reserve cannot be deleted")


def _says_full(text: str) -> bool:
    if any(words in text for words in _FULL_WORDS):
        return True
    is_vague = any(words in text for words in _SQLITE_WORDS)
    return is_vague and free_bytes(reserve_path().parent) < LAST_BYTES


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
