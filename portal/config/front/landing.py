"""A large piece of an upload, from its socket straight into its file, in a thread of its own.

The kernel moves the bytes (splice): none passes through Python, unless it is hashed as well. What
was written is on its way to the disk while more arrives, so that the sync at the end waits little.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from portal.archive import storage
from portal.archive.services.transfers.held import BROKEN, BUSY, FULL, Allowed, Landed
from portal.archive.services.transfers.writing import UploadBusyError, file_held
from portal.config.front.limits import FrontLimits
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import StorageFullError

PIPE_BYTES: Final = 2**20  # the most an ordinary user may ask for; what one call moves
READ_BYTES: Final = 2**18  # of what is hashed: stays in the processor's cache
WRITE_BACK_BYTES: Final = 8 * 2**20  # begun at once: large for the disk, small beside a piece
LOOK_EVERY_S: Final = 0.5  # for a piece that was called off, while nothing comes


class Landing:
    """The body of one request: what came with its head, and what is still to come.

    Args:
        number: of the socket; it is copied, and nobody else may read from it in the meantime.
        early: what was read of the body already.
        length: of the whole body.
        given_up: whether to break off now.
    """

    def __init__(
        self,
        number: int,
        early: bytes,
        length: int,
        *,
        limits: FrontLimits,
        given_up: Callable[[], bool],
    ) -> None:
        self.rest = length
        self._early = memoryview(early)
        self._length, self._limits, self._given_up = length, limits, given_up
        self._began = time.monotonic()
        self._socket = os.dup(number)
        self._pipe: tuple[int, int] | None = None
        self._can_splice = hasattr(os, "splice")

    def close(self) -> None:
        """Give the copies back."""
        for number in (self._socket, *(self._pipe or ())):
            os.close(number)

    def land(self, name: str, stretch: Allowed) -> Landed:
        """Write a stretch of the transfer of this name and bring it to the disk.

        A piece that breaks off is kept as far as it came; the API decides how much counts.
        """
        try:
            with full_disk_refused(), file_held(name) as file:
                number = file.fileno()
                if os.fstat(number).st_size != stretch.begin:
                    return Landed(stretch.begin, stretch.begin, failed=BUSY)
                return self._landed(number, stretch)
        except (UploadBusyError, FileNotFoundError):
            return Landed(stretch.begin, stretch.begin, failed=BUSY)
        except StorageFullError:
            return Landed(stretch.begin, stretch.begin, failed=FULL)

    def _landed(self, file: int, stretch: Allowed) -> Landed:
        hashed = None
        if stretch.algorithm:
            hashed = hashlib.new(stretch.algorithm, usedforsecurity=False)
        at = begun = looked = stretch.begin
        require_room()
        while at < stretch.end:
            count = self._move(file, at, stretch.end - at, hashed)
            if not count:
                break
            at += count
            self.rest -= count
            if at - begun >= WRITE_BACK_BYTES:
                _write_back(file, begun, at)
                begun = at
            if at - looked >= storage.ROOM_EVERY_BYTES:
                require_room()
                looked = at
        os.fsync(file)
        return Landed(
            stretch.begin,
            at,
            mtime_ns=os.fstat(file).st_mtime_ns,
            digest=hashed.hexdigest() if hashed else "",
            failed="" if at == stretch.end else BROKEN,
        )

    def _move(self, file: int, at: int, most: int, hashed: Any) -> int:
        """Write some more bytes; returns how many, 0 if no more come."""
        if self._early:
            part, self._early = self._early[:most], self._early[most:]
            return _written(file, at, part, hashed)
        while True:
            try:
                if self._can_splice and hashed is None:
                    return self._spliced(file, at, min(most, PIPE_BYTES))
                buffer = bytearray(min(most, READ_BYTES))
                count = os.readv(self._socket, [buffer])
                return _written(file, at, memoryview(buffer)[:count], hashed)
            except BlockingIOError:
                if not self._more_came():
                    return 0
            except ConnectionError:
                return 0

    def _more_came(self) -> bool:
        """Wait for bytes, as long as the client may take; False if it takes longer."""
        arrived = self._length - self.rest
        spent_s = time.monotonic() - self._began - self._limits.gap_s
        if arrived < spent_s * self._limits.rate_bytes_s:
            return False
        poll, ends = select.poll(), time.monotonic() + self._limits.gap_s
        poll.register(self._socket, select.POLLIN)
        while not self._given_up() and (left := ends - time.monotonic()) > 0:
            if poll.poll(1000 * min(left, LOOK_EVERY_S)):
                return True
        return False

    def _spliced(self, file: int, at: int, most: int) -> int:
        if self._pipe is None:
            self._pipe = os.pipe()
            with suppress(OSError):  # a user may have only a few large pipes; a small one will do
                fcntl.fcntl(self._pipe[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        out, into = self._pipe
        count = left = os.splice(self._socket, into, most)
        while left:
            try:
                left -= os.splice(out, file, left, offset_dst=at + count - left)
            except OSError:
                # The file system cannot splice, or the disk is full: a plain write tells which.
                self._can_splice = False
                left -= _written(file, at + count - left, memoryview(os.read(out, left)), None)
        return count


def _write_back(file: int, begin: int, end: int) -> None:
    """Begin to write bytes to the disk: Linux does so when told that memory need not keep them."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, begin, end - begin, os.POSIX_FADV_DONTNEED)


def _written(file: int, at: int, data: memoryview, hashed: Any) -> int:
    if hashed is not None:
        hashed.update(data)
    rest = data
    while rest:
        count = os.pwrite(file, rest, at)
        rest, at = rest[count:], at + count
    return len(data)
