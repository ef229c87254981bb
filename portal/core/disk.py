"""Room on the storage volume: a floor that uploads and jobs leave free, and a reserve for records.

Uploads, jobs and caches stop at the floor, so that records can be written long after. Against
other programs that fill the disk all the same there is the reserve: a file of some size beside the
records, given back to the disk at the moment nothing else is left, and made again once there is
room.
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

from portal.core.errors import StorageFullError
from portal.core.storage_layout import Place, root

logger = logging.getLogger(__name__)

RESERVE = Place.RESERVE.folder_name  # in the folder of the records or in the storage

FLOOR_BYTES = 2 * 2**30  # records are small: room to write them for a long time
FLOOR_SHARE = 0.05  # of a small volume: most of it can be used
LAST_BYTES = 8 * 2**20  # with less than this a database may fail to write: the reserve goes
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("disk is full", "no space left", "disk full", "quota exceeded")
_SQLITE_WORDS = ("disk i/o error", "unable to open database file")  # what a full disk can look like
MESSAGE = (
    "The portal's disk is full. Nothing was stored; what is already there is safe. Tell the IT "
    "people of your lab."
)


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written below a folder, which need not exist yet."""
    return shutil.disk_usage(_existing(folder)).free


def floor_bytes() -> int:
    """What uploads and jobs leave free: as configured, or 2 GiB, at most 5 % of the volume."""
    configured = int(settings.TESSERA_STORAGE_FLOOR_BYTES)
    if configured:
        return configured
    total = shutil.disk_usage(_existing(root())).total
    return min(FLOOR_BYTES, int(total * FLOOR_SHARE))


def require_room(size_bytes: int = 0) -> None:
    """Refuse to begin, or to continue with, what needs ``size_bytes`` more on the storage volume.

    Raises:
        StorageFullError: it would leave less than the floor.
    """
    left = free_bytes(root()) - floor_bytes()
    if size_bytes > left or left <= 0:
        raise StorageFullError(MESSAGE, details={"room_bytes": max(0, left)})


def has_room(size_bytes: int = 0) -> bool:
    """Whether there is more room than the floor; for work that can be left out."""
    try:
        require_room(size_bytes)
    except StorageFullError:
        return False
    return True


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, says that a disk is full."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, StorageFullError):
            return True
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if isinstance(error, DatabaseError) and _says_full(str(error).lower()):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def full_disk_refused() -> Iterator[None]:
    """Turn the error of a full disk into ``StorageFullError``; others pass."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise StorageFullError(MESSAGE) from error


def reserve_path() -> Path:
    """Where the reserve lies: beside an SQLite database, else on the storage volume."""
    name = str(connection.settings_dict["NAME"])
    is_file = connection.vendor == "sqlite" and name and not name.startswith((":memory:", "file:"))
    folder = Path(name).parent if is_file else root()
    return folder / RESERVE


def reserve_keep() -> bool:
    """Make the reserve where it is missing and there is room for it, or give it back in need.

    Returns:
        Whether the reserve is there now.
    """
    path, size = reserve_path(), int(settings.TESSERA_RESERVE_BYTES)
    reserve_release()
    if path.exists() or not size:
        return path.exists()
    spare = max(floor_bytes(), 2 * LAST_BYTES)
    if not path.parent.is_dir() or free_bytes(path.parent) < spare + size:
        return False
    made = path.with_suffix(f".{os.getpid()}")
    try:
        with made.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        made.replace(path)
    except OSError:
        logger.warning("the reserve cannot be made", exc_info=True)
    finally:
        made.unlink(missing_ok=True)
    return path.exists()


def reserve_release() -> None:
    """Give the reserve back where next to nothing is left; cheap enough for every write."""
    path = reserve_path()
    try:
        if free_bytes(path.parent) < LAST_BYTES and path.exists():
            path.unlink(missing_ok=True)
            logger.error("the disk is full: the reserve was given back for records")
    except OSError:
        logger.exception("the reserve cannot be given back")


def _says_full(text: str) -> bool:
    if any(words in text for words in _FULL_WORDS):
        return True
    is_vague = any(words in text for words in _SQLITE_WORDS)
    return is_vague and free_bytes(reserve_path().parent) < LAST_BYTES


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
