"""A worker's processes, of which any may be killed at any time.

On a broker that Celery polls (the file system), the worker's processes share one queue, and the one
that waits for the next job holds the queue's lock. Killed there it takes a semaphore along, and no
other process of the worker ever gets a job again. A lock of the operating system is let go of when
its holder dies.
"""

from __future__ import annotations

import fcntl
import tempfile
from typing import Any

from billiard.pool import Pool
from celery.signals import celeryd_init


class MortalLock:
    """A lock between processes of one ancestor that is free again when its holder dies.

    A record lock of an unlinked file, which belongs to a process and not to a thread.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- as long as the lock

    def acquire(self) -> None:
        """Wait for it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let go of it."""
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class KillablePool(Pool):
    """Processes that share a queue; what is killed takes no lock along."""

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue._rlock = MortalLock()
        self._outqueue._wlock = MortalLock()


@celeryd_init.connect
def _on_start(**_: Any) -> None:
    from celery.concurrency.prefork import TaskPool  # not for web processes

    TaskPool.BlockingPool = KillablePool
