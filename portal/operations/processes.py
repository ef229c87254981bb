"""Names and command lines of the processes of a portal."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from portal.core import environment


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """Name and command line of a child process."""

    name: str
    command: Sequence[str]


WORKER_NICE = 15  # web processes take precedence; a worker gets at least 1/30 of a core


def web(host: str, port: int, *, reload: bool) -> list[ChildProcess]:
    """Web processes on one port.

    With ``reload`` there is a single one, restarted when the code changes.
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
    """Celery worker of both queues; with ``reload`` restarted when the code changes."""
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
    """Process that sends lost job messages again and requeues jobs of lost workers."""
    return ChildProcess("reaper", [sys.executable, "manage.py", "reaper"])


def free_port(host: str, first_port: int) -> int:
    """First free port from ``first_port`` on; 100 are tried.

    Raises:
        OSError: None of them is free.
    """
    for port in range(first_port, first_port + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {first_port} to {first_port + 99} on {host}")


def is_listening(host: str, port: int) -> bool:
    """Return whether a process accepts connections at an address."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
