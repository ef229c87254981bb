"""One process tree: web, worker and reaper, started together and stopped together.

The children die with this process however it dies (``die_with_parent``), so nothing is left behind
by Ctrl-C, by a closed terminal or by ``kill -9``.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from portal.core.children import die_with_parent

STOP_WAIT_S = 8.0  # below the 10 s after which Docker kills


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process: its name and its command line."""

    name: str
    command: Sequence[str]


def web(host: str, port: int, *, reload: bool) -> ChildProcess:
    """The portal: gunicorn, or Django's reloading server for a developer."""
    if reload:
        command = [sys.executable, "manage.py", "runserver", f"{host}:{port}"]
    else:
        command = [
            *(sys.executable, "-m", "gunicorn", "portal.config.wsgi:application"),
            *("--bind", f"{host}:{port}", "--worker-class", "gthread"),
            *("--workers", "2", "--threads", "4", "--keep-alive", "30", "--reuse-port"),
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
    return ChildProcess("worker", command)


def reaper() -> ChildProcess:
    """Rings unheard jobs, takes lost ones back."""
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


class ProcessTree:
    """Runs processes as children of this process. Use as a context manager."""

    def __init__(
        self,
        processes: Sequence[ChildProcess],
        *,
        say: Callable[[str], object],
        log_folder: Path | None = None,
    ) -> None:
        """``log_folder``: the children write to a file each instead of to this terminal."""
        self.processes, self.say, self.log_folder = processes, say, log_folder
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ProcessTree:
        # A closed terminal or a polite kill ends the tree as Ctrl-C does.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _as_interrupt)
        for process in self.processes:
            self.children[process.name] = self._start(process)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, process: ChildProcess) -> subprocess.Popen[bytes]:
        with ExitStack() as stack:
            output = None
            if self.log_folder is not None:
                self.log_folder.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(self._log(process).open("wb"))
            return subprocess.Popen(
                process.command,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the children through us, once
                preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads run here yet
            )

    def _log(self, process: ChildProcess) -> Path:
        return (self.log_folder or Path()) / f"{process.name}.log"

    def wait(self) -> int:
        """Until a child ends on its own; returns its exit code. Ctrl-C raises."""
        while True:
            for process in self.processes:
                if (code := self.children[process.name].poll()) is not None:
                    where = f" See {self._log(process)}." if self.log_folder else ""
                    self.say(f"{process.name} ended by itself (exit code {code}).{where}")
                    return code or 1
            time.sleep(0.3)

    def stop(self) -> None:
        """Ask every child to stop, then insist. Every process group is gone afterwards."""
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + STOP_WAIT_S
        for child in self.children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            _kill_group(child.pid)
            child.wait()


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _as_interrupt(*_: object) -> None:
    raise KeyboardInterrupt
