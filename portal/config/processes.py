"""The processes that make up a portal: their names and command lines."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from portal.config import environment


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process: its name and its command line."""

    name: str
    command: Sequence[str]


WORKER_NICE = 15  # work that waits in a queue gets what the web leaves, a thirtieth at least


def web(host: str, port: int, *, reload: bool) -> list[ChildProcess]:
    """The web processes, which listen on one port; for a developer one, started again when the
    code changes.
    """
    command = [sys.executable, "manage.py", "web", "--host", host, "--port", str(port)]
    if reload:
        return [ChildProcess("web", _reloading(command))]
    workers = int(environment.number("TESSERA_WEB_WORKERS", default=2, minimum=1))
    return [ChildProcess(f"web-{number}", command) for number in range(1, workers + 1)]


def _reloading(command: Sequence[str]) -> list[str]:
    watch = [sys.executable, "-m", "watchfiles", "--filter", "python"]
    return [*watch, shlex.join(command), "portal", "ml"]


def worker(*, concurrency: int = 2, reload: bool = False) -> ChildProcess:
    """A Celery worker of both queues; for a developer, started again when the code changes."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "portal.config.celery", "--quiet", "worker"),
        *("-Q", "default,gpu", "-c", str(concurrency), "-l", "WARNING"),
        *("--without-gossip", "--without-mingle", "-n", f"worker-{os.getpid()}@%h"),
    ]
    if reload:
        command = _reloading(command)
    nice = int(environment.number("TESSERA_WORKER_NICE", default=WORKER_NICE, minimum=0))
    return ChildProcess("worker", ["nice", "-n", str(nice), *command])


def reaper() -> ChildProcess:
    """Rings again for unheard jobs, takes lost ones back."""
    return ChildProcess("reaper", [sys.executable, "manage.py", "reaper"])


def free_port(host: str, wanted: int) -> int:
    """The wanted port, or the next free one (100 are tried)."""
    for port in range(wanted, wanted + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {wanted} to {wanted + 99} on {host}")
