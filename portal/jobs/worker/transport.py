"""The filesystem broker, with every file written beside and renamed into place.

kombu's own transport writes messages and exchange tables where others read them: a reader between
``open`` and ``write`` finds half a file, and its worker dies of the JSON error. Here a name appears
with its whole content or not at all, and a message is taken by one rename, which one reader wins.
What cannot be read all the same (a disk that was full, a power cut) is dropped with a warning: a
message is only a doorbell, and the ledger rings again.

``portal.config.celery`` puts this class in the place of kombu's for ``filesystem://``.
"""

from __future__ import annotations

import fcntl
import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem

logger = logging.getLogger(__name__)

_Channel: Any = filesystem.Channel  # kombu carries no types
_Transport: Any = filesystem.Transport
_Row: Any = filesystem.exchange_queue_t
LEFTOVER_AFTER_S = 3600.0  # a file still hidden by then belongs to a process that was killed


class Channel(_Channel):
    """kombu's channel with whole files only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sweep()

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:
        name = f"{time.time_ns():020d}_{uuid.uuid4()}.{queue}.msg"  # sorts by time
        try:
            _write_whole(Path(self.data_folder_out) / name, payload)
        except OSError as error:
            raise ChannelError(f"Cannot add {name!r} to the queue.") from error

    def _get(self, queue: str) -> Any:
        folder = Path(self.data_folder_in)
        for name in sorted(file.name for file in folder.iterdir()):
            if name.startswith(".") or name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = folder / f".{name}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:
                continue  # another worker was quicker
            try:
                return json.loads(taken.read_text())
            except ValueError:
                logger.warning("broker: %s cannot be read; dropped", name)
            finally:
                taken.unlink(missing_ok=True)
        raise Empty

    def get_table(self, exchange: str) -> list[Any]:
        """The queues bound to an exchange."""
        return _read_table(self._exchange_file(exchange))

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        row = _Row(routing_key or "", pattern or "", queue or "")
        file = self._exchange_file(exchange)
        with _locked(file):
            rows = _read_table(file)
            if row not in rows:
                _write_whole(file, [row, *rows])

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any
    ) -> None:
        row = _Row(routing_key or "", pattern or "", queue or "")
        self._purge(queue)
        file = self._exchange_file(exchange)
        with _locked(file):
            rows = _read_table(file)
            if row in rows:
                _write_whole(file, [known for known in rows if known != row])

    def _sweep(self) -> None:
        """Remove what killed processes left half done."""
        before = time.time() - LEFTOVER_AFTER_S
        for file in Path(self.data_folder_in).glob(".*"):
            with suppress(OSError):
                if file.stat().st_mtime < before:
                    file.unlink()


class Transport(_Transport):
    """``filesystem://`` of Tessera."""

    Channel = Channel


def _write_whole(file: Path, content: Any) -> None:
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_text(json.dumps(content))
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def _read_table(file: Path) -> list[Any]:
    try:
        return [_Row(*row) for row in json.loads(file.read_text())]
    except FileNotFoundError:
        return []
    except ValueError:
        logger.warning("broker: %s cannot be read; written again", file.name)
        return []


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One writer of a table at a time. The lock is a file beside, since the table is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f".{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
