"""Supervision of web, worker and reaper as one process tree.

A child that ends is restarted after a growing pause; one that keeps failing ends the tree. The
children are killed with this process however it ends (``die_with_parent``): by Ctrl-C, a closed
terminal or ``kill -9``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from portal.core.children import die_with_parent
from portal.operations.processes import ChildProcess

STOP_WAIT_S = 8.0  # below the 10 s after which Docker kills
POLL_S = 0.3  # of the children
STABLE_AFTER_S = 30.0  # run time after which earlier failures no longer count
GIVE_UP_AFTER = 6  # fast failures in a row, with half a minute of pauses
PAUSE_S, MAX_PAUSE_S = 1.0, 30.0  # before a child is started again; doubled each time


@dataclass(slots=True)
class Restarts:
    """Number of consecutive failures of a role, and the pause before the next start."""

    failures: int = 0

    def pause_s(self, ran_s: float) -> float | None:
        """Pause before the next start; None after too many fast failures."""
        self.failures = 1 if ran_s >= STABLE_AFTER_S else self.failures + 1
        if self.failures >= GIVE_UP_AFTER:
            return None
        return min(PAUSE_S * 2.0 ** (self.failures - 1), MAX_PAUSE_S)


@dataclass(slots=True)
class _Role:
    process: ChildProcess
    restarts: Restarts
    child: subprocess.Popen[bytes]
    started_s: float
    due_s: float | None = None  # when it is started again, while it is down


class ProcessTree:
    """Child processes, restarted when they end. A context manager."""

    def __init__(
        self,
        processes: Sequence[ChildProcess],
        *,
        say: Callable[[str], object],
        log_folder: Path | None = None,
    ) -> None:
        """``log_folder``: folder of the children's log files; None: they write to this terminal."""
        self.processes, self.say, self.log_folder = processes, say, log_folder
        self._roles: dict[str, _Role] = {}
        # Shared metrics of the web processes (portal.core.observe.metrics).
        self._counts = tempfile.TemporaryDirectory(prefix="tessera-metrics-")

    @property
    def children(self) -> dict[str, subprocess.Popen[bytes]]:
        """Current child process of each role."""
        return {name: role.child for name, role in self._roles.items()}

    def __enter__(self) -> ProcessTree:
        # SIGTERM and a closed terminal end the tree as Ctrl-C does.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _as_interrupt)
        for process in self.processes:
            child = self._start(process, log_mode="wb")
            self._roles[process.name] = _Role(process, Restarts(), child, time.monotonic())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._counts.cleanup()

    def wait(self) -> int:
        """Restart children until one keeps failing; return its exit code."""
        while True:
            code = self._supervise_all()
            if code is not None:
                return code
            time.sleep(POLL_S)

    def wait_until(self, condition: Callable[[], bool]) -> int | None:
        """Restart children until the condition holds; return the exit code of one that keeps
        failing before.
        """
        while not condition():
            code = self._supervise_all()
            if code is not None:
                return code
            time.sleep(POLL_S)
        return None

    def stop(self) -> None:
        """Terminate every child, then kill its process group."""
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + STOP_WAIT_S
        for child in self.children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            _kill_group(child.pid)
            child.wait()

    def _supervise_all(self) -> int | None:
        codes = [self._supervise(role) for role in self._roles.values()]
        return next((code for code in codes if code is not None), None)

    def _supervise(self, role: _Role) -> int | None:
        """Restart a child that ended; return its exit code if it failed too often."""
        now = time.monotonic()
        if role.due_s is not None:
            if now >= role.due_s:
                role.child = self._start(role.process, log_mode="ab")
                role.started_s, role.due_s = now, None
            return None
        code = role.child.poll()
        if code is None:
            return None
        _kill_group(role.child.pid)  # its children must not outlive it
        pause_s = role.restarts.pause_s(now - role.started_s)
        name, where = role.process.name, self._log_hint(role.process)
        ended = f"{name} ended unexpectedly ({_cause(code)})."
        if pause_s is None:
            self.say(f"{ended}{where} It failed {GIVE_UP_AFTER} times in a row: giving up.")
            return code if code > 0 else 1
        self.say(f"{ended}{where} Starting it again in {pause_s:g} s.")
        role.due_s = now + pause_s
        return None

    def _start(self, process: ChildProcess, *, log_mode: str) -> subprocess.Popen[bytes]:
        with ExitStack() as stack:
            output = None
            if self.log_folder is not None:
                self.log_folder.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(self._log(process).open(log_mode))
            return subprocess.Popen(
                process.command,
                stdout=output,
                stderr=output,
                env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": self._counts.name},
                # Ctrl-C reaches the children through us, once. A group and no session of their own:
                # where Linux shares its time among sessions, the worker's niceness would be lost.
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
            )

    def _log(self, process: ChildProcess) -> Path:
        return (self.log_folder or Path()) / f"{process.name}.log"

    def _log_hint(self, process: ChildProcess) -> str:
        return f" See {self._log(process)}." if self.log_folder else ""


def _cause(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _as_interrupt(*_: object) -> None:
    raise KeyboardInterrupt
