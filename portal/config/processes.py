"""The processes that make up a portal: their names and command lines."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from portal.config import environment


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process: its name and its command line."""

    name: str
    command: Sequence[str]


FRONTS = 2  # for tiles on both cores of a small machine; each holds about 60 MiB
WORKER_NICE = 15  # work that waits in a queue gets what the web leaves, a thirtieth at least


def web(host: str, port: int, *, reload: bool) -> list[ChildProcess]:
    """The portal: fronts on one port and gunicorn behind them, on a socket of this run's own.

    For a developer, Django's reloading server alone.
    """
    if reload:
        command = [sys.executable, "manage.py", "runserver", f"{host}:{port}"]
        return [ChildProcess("web", command)]
    folder = tempfile.mkdtemp(prefix="tessera-")  # only this user may enter it
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    socket_path = f"{folder}/api.sock"
    workers = int(environment.number("TESSERA_WEB_WORKERS", default=2, minimum=1))
    threads = int(environment.number("TESSERA_WEB_THREADS", default=4, minimum=1))
    calls = max(1, workers * threads // FRONTS)
    front = [
        *(sys.executable, "manage.py", "front", "--host", host, "--port", str(port)),
        *("--api", socket_path, "--calls", str(calls)),
    ]
    fronts = [ChildProcess(f"front-{number}", front) for number in range(1, FRONTS + 1)]
    return [_api(socket_path, workers=workers, threads=threads), *fronts]


def _api(socket_path: str, *, workers: int, threads: int) -> ChildProcess:
    command = [
        *(sys.executable, "-m", "gunicorn", "portal.config.wsgi:application"),
        *("--bind", f"unix:{socket_path}", "--worker-class", "gthread"),
        *("--workers", str(workers), "--threads", str(threads), "--keep-alive", "0"),
        *("--max-requests", "0", "--log-level", "warning", "--no-control-socket"),
    ]
    return ChildProcess("web", command)


def worker(*, concurrency: int = 2, reload: bool = False) -> ChildProcess:
    """A Celery worker of both queues; for a developer, started again when the code changes."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "portal.config.celery", "--quiet", "worker"),
        *("-Q", "default,gpu", "-c", str(concurrency), "-l", "WARNING"),
        *("--without-gossip", "--without-mingle", "-n", f"worker-{os.getpid()}@%h"),
    ]
    if reload:
        watch = [sys.executable, "-m", "watchfiles", "--filter", "python"]
        command = [*watch, shlex.join(command), "portal", "ml"]
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
