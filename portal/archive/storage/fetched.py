"""Local cache of originals in object storage; each is fetched once, least recently used go first.

The partial file of a fetch is also its lock: the holder fetches, the others wait and find the copy.
It has its full length from the beginning, so that concurrent fetches each count towards the limit.
A process that dies releases the lock; the next one starts over.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from portal.core.disk import full_disk_refused, has_room, require_room

PART, ROOM = ".part", ".room"
Fetch = Callable[[BinaryIO], None]
"""Writes all bytes into an empty file that has their length; raises where they are not right."""


class Fetched:
    """A folder of copies that holds at most ``limit_bytes``, or one file that is larger."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = limit_bytes

    def find(self, name: str) -> Path | None:
        """The copy, which is now the one used last."""
        path = self._folder / name
        try:
            _use(path)
        except FileNotFoundError:
            return None
        return path

    def fetch(self, name: str, size_bytes: int, fetch: Fetch) -> Path:
        """The copy, fetched by this process or by another one in the meantime.

        Raises:
            StorageFullError: no room on the volume, even without all other copies.
        """
        path = self._folder / name
        with full_disk_refused(), self._lock_file(path) as part:
            if cached := self.find(name):
                return cached
            self._reserve(part, size_bytes, keep=path)
            fetch(part)
            part.flush()
            os.fchmod(part.fileno(), 0o440)
            _use(_part(path))
            _part(path).rename(path)
        return path

    def keep(self, received: Path, name: str) -> None:
        """Take over a file that was put into the store, or drop it if it exceeds the limit."""
        path, size_bytes = self._folder / name, received.stat().st_size
        with full_disk_refused(), self._lock_file(path):
            if size_bytes > self._limit:
                received.unlink()
                return
            with self._exclusive():
                self._make_room(size_bytes, more_bytes=0, keep=path)
            received.chmod(0o440)
            _use(received)
            received.replace(path)

    def drop(self, name: str) -> bool:
        """Delete a copy, which open readers can still read; returns whether there was one.

        What a fetch that was killed, or is under way, has written of it goes as well.
        """
        path = self._folder / name
        was_there = path.exists()
        for file in (_part(path), path):
            file.unlink(missing_ok=True)
        return was_there

    def names(self) -> list[str]:
        """The names of all whole copies."""
        return [
            path.relative_to(self._folder).as_posix()
            for path in self._folder.rglob("*")
            if path.is_file() and path.suffix != PART and path.name != ROOM
        ]

    @contextmanager
    def _lock_file(self, path: Path) -> Iterator[BinaryIO]:
        """The part of this file, empty and locked; gone afterwards unless it became the file."""
        part = _part(path)
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not _is(part, file):  # finished or dropped while this process waited
                    continue
                file.truncate(0)
                try:
                    yield file
                finally:
                    if _is(part, file):
                        part.unlink()
                return

    def _reserve(self, part: BinaryIO, size_bytes: int, *, keep: Path) -> None:
        with self._exclusive():
            self._make_room(size_bytes, more_bytes=size_bytes, keep=keep)
            require_room(size_bytes)
            part.truncate(size_bytes)

    def _make_room(self, size_bytes: int, *, more_bytes: int, keep: Path) -> None:
        """Drop what was used longest ago until this many bytes fit, of which ``more_bytes`` are not
        on the volume yet; never a part at work.
        """
        entries = []
        for path in self._folder.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file() and path.name not in (keep.name + PART, ROOM):
                    stat = path.stat()
                    entries.append((stat.st_mtime_ns, stat.st_size, path))
        total_bytes = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total_bytes + size_bytes <= self._limit and has_room(more_bytes):
                return
            if _drop_idle(path):
                total_bytes -= size

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with (self._folder / ROOM).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _use(path: Path) -> None:
    """Note the time of use; the kernel's own times are too coarse to tell which was the last."""
    now_ns = time.time_ns()
    os.utime(path, ns=(now_ns, now_ns))


def _part(path: Path) -> Path:
    return path.with_name(path.name + PART)


def _is(path: Path, file: BinaryIO) -> bool:
    """Return whether this name still leads to this open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _drop_idle(path: Path) -> bool:
    """Delete a copy, or a partial file of a dead process; return False if it is being fetched."""
    if path.suffix != PART:
        path.unlink(missing_ok=True)
        return True
    with suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        return True
    return False
