"""Real workers, a real reaper, a real broker; and the means to kill them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portal.operations.processes import reaper, worker
from tests import databases
from tests.polling import wait_until

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Portal:
    """One database and one broker; processes are started and killed by the test."""

    folder: Path
    database_url: str
    broker_url: str
    empty_broker: Callable[[], None]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    asked: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    reaper: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.log = self.folder / "attempts.log"
        self.output = self.folder / "output.log"
        self.env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.killing.settings",
            "TESSERA_DATABASE_URL": self.database_url,
            "TESSERA_BROKER_URL": self.broker_url,
            "TESSERA_BROKER_FOLDER": str(self.folder / "broker"),
            "TESSERA_STORAGE": str(self.folder / "storage"),
            "TESSERA_KILL_LOG": str(self.log),
            "TESSERA_WEB_WORKERS": "1",  # each takes seconds of a processor to start
            "TESSERA_JOB_LEASE_S": "2",
            "TESSERA_JOB_REAP_EVERY_S": "0.3",
            "TESSERA_JOB_RESEND_AFTER_S": "1",
            "TESSERA_JOB_LIMITS": "sleep_for_ever=4,block_for_ever=4",
        }
        scheme, _, path = self.database_url.partition(":///")
        if scheme == "sqlite":
            databases.migrated(Path(path))
        else:
            databases.migrate_server(self.database_url)

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout.decode()

    def control(self, *arguments: str) -> Any:
        return self.ask("tests.killing.control", *arguments)

    def ask(self, module: str, *arguments: str) -> Any:
        """Call a module of this folder (``tests.killing.command_line``).

        One process a module: a test calls it many times, and it takes seconds to start.
        """
        if module not in self.asked:
            with self.output.open("ab") as output:
                self.asked[module] = subprocess.Popen(
                    [sys.executable, "-m", module],
                    cwd=ROOT,
                    env=self.env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    text=True,
                )
        process = self.asked[module]
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps(arguments), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        assert answer, self.output.read_text()[-2000:]
        return json.loads(answer)

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        if "serve" in command:
            self.end_reaper()  # the tree has its own, which must do the work
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.env,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_worker(self, name: str = "one", *, places: int = 2) -> subprocess.Popen[bytes]:
        command = list(worker(concurrency=places).command)
        command[-1] = f"{name}@%h"
        return self.start(command)

    def start_reaper(self) -> None:
        """One for all tests of an engine: none of them kills it, and it takes seconds to start."""
        if self.reaper is None:
            self.reaper = self.start(list(reaper().command))
            self.processes.remove(self.reaper)
        assert self.reaper.poll() is None, "the reaper has ended"

    def end_reaper(self) -> None:
        if self.reaper is not None:
            self.reaper.kill()
            self.reaper.wait()
            self.reaper = None

    def attempts(self) -> list[tuple[str, int, int]]:
        """(job name, process, parent process) of every attempt that began."""
        if not self.log.exists():
            return []
        rows = [line.split() for line in self.log.read_text().splitlines()]
        return [(name, int(pid), int(parent)) for name, pid, parent in rows]

    def wait_for_attempts(self, count: int) -> list[tuple[str, int, int]]:
        self.wait_until(lambda: len(self.attempts()) >= count, f"{count} attempts")
        return self.attempts()

    def wait_until_ended(self) -> dict[str, Any]:
        rows: dict[str, Any] = {}

        def ended() -> bool:
            rows.update(self.control("state"))
            return all(job["state"] not in {"queued", "running"} for job in rows.values())

        self.wait_until(ended, "every job to end")
        return rows

    def wait_until(self, holds: Callable[[], bool], what: str, *, within_s: float = 240) -> None:
        def detail() -> str:
            tail = self.output.read_text()[-3000:] if self.output.exists() else ""
            return f"{self.control('state')}\n{tail}"

        # each look costs queries
        wait_until(holds, what, within_s=within_s, every_s=0.25, detail=detail)

    def close(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder / "broker", ignore_errors=True)

    def ask_no_more(self) -> None:
        """End what answers, and the reaper: their connections too are gone."""
        self.end_reaper()
        for process in self.asked.values():
            process.kill()
            process.communicate()
        self.asked.clear()


def is_alive(pid: int) -> bool:
    """True while the process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def children_of(pid: int) -> list[int]:
    """The processes that it started, by whichever of its threads."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(word) for rows in lists for word in rows.read_text().split()]
    assert children, f"process {pid} has no children"
    return children
