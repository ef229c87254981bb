"""Workarounds for two bugs below Celery with the ``filesystem://`` broker.

- celery/kombu#1551 (open): the transport reads messages that are not completely written, and a
  message or queue table that is not valid JSON ends the worker. ``Channel`` renames complete
  messages into place and drops damaged ones, which the reaper sends again;
  ``remove_damaged_tables`` removes damaged tables, which the worker then writes again.
- celery/billiard#104, #457: the processes of a pool share a queue, and the one that waits for the
  next task holds its lock. If it is killed, the semaphore stays locked and the worker never runs
  another task. ``KillablePool`` uses locks that the operating system releases.

With Redis neither is needed, because each process then has its own pipe.
"""

from __future__ import annotations

import fcntl
import json
import logging
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from billiard.pool import Pool
from celery.signals import celeryd_init
from django.conf import settings
from kombu.exceptions import ChannelError
from kombu.transport import filesystem

logger = logging.getLogger(__name__)

_Channel: Any = filesystem.Channel  # kombu carries no types
_Transport: Any = filesystem.Transport


class Channel(_Channel):
    """kombu's channel with atomic writes that skips damaged messages."""

    def _get(self, queue: str) -> Any:
        while True:  # kombu removes the file before it parses it
            try:
                return super()._get(queue)
            except ValueError:
                logger.warning("broker: a message in %s cannot be read; dropped", queue)

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:
        folder = Path(self.data_folder_out)
        name = f"{time.time_ns():020d}_{uuid.uuid4()}.{queue}.msg"  # read in the order of names
        part = folder / f"{name}.part"
        try:
            part.write_text(json.dumps(payload))
            part.rename(folder / name)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise ChannelError(f"Cannot add {name!r} to the queue.") from error


class Transport(_Transport):
    """``filesystem://`` with this channel; see ``portal.config.celery``."""

    Channel = Channel


def remove_damaged_tables(folder: Path) -> None:
    """Remove queue tables that a full disk or a power cut left incomplete."""
    for table in folder.glob("*.exchange"):
        try:
            json.loads(table.read_text())
        except ValueError:
            table.unlink(missing_ok=True)


class ProcessLock:
    """Lock between processes of one ancestor that is released when its holder dies.

    A record lock on an unlinked file; it belongs to a process, not to a thread.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- as long as the lock

    def acquire(self) -> None:
        """Wait for the lock."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class KillablePool(Pool):
    """Pool whose shared queues stay usable after a process was killed."""

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue._rlock = ProcessLock()
        self._outqueue._wlock = ProcessLock()


@celeryd_init.connect
def _on_start(**_: Any) -> None:
    from celery.concurrency.prefork import TaskPool  # not for web processes

    TaskPool.BlockingPool = KillablePool
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    if "control_folder" in options:
        remove_damaged_tables(Path(str(options["control_folder"])))
