"""A PostgreSQL cluster and a Redis of the run's own, on free ports: made to be killed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psycopg
import redis

from tests.polling import wait_until
from tests.ports import HOST, free_port


class Postgres:
    """Its own cluster. Root may not run one, so root hands it to the user ``postgres``."""

    def __init__(self, folder: Path) -> None:
        self.data, self.port = folder / "postgres", free_port()
        self.log = folder / "postgres.log"
        self.user = "postgres" if os.geteuid() == 0 else None
        self.bin = _postgres_bin()
        self.data.mkdir()
        if self.user:
            owner = pwd.getpwnam(self.user)
            os.chown(self.data, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-D", str(self.data), "-U", "tessera", "-A", "trust", "--no-sync")
        self.url = f"postgres://tessera@{HOST}:{self.port}/postgres"
        self.start()

    def start(self) -> None:
        """Start, or start again after a kill (it recovers first)."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(self.bin / "postgres"), "-D", str(self.data), "-p", str(self.port)),
                    *("-h", HOST, "-k", "", "-c", "max_connections=60"),
                ],
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,
                cwd=self.data,
            )

    def wait(self) -> None:
        """Wait until it accepts connections."""
        wait_until(self._answers, "PostgreSQL", within_s=60, every_s=0.3)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            if self.process.poll() is not None:
                self.start()  # a backend of the killed one was still there
            return False
        return True

    def kill(self) -> None:
        """Kill the postmaster and every backend, like a power cut."""
        _kill_session(self.process)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.bin / name), *arguments],
            user=self.user,
            capture_output=True,
            cwd=self.data,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()


class Redis:
    """Its own server, without persistence: a killed one comes back empty."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self.start()

    def start(self) -> None:
        """Start, empty."""
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *("redis-server", "--port", str(self.port), "--bind", HOST),
                    *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until it answers."""
        wait_until(self._answers, "Redis", within_s=30, every_s=0.2)

    def _answers(self) -> bool:
        try:
            redis.Redis(port=self.port, socket_connect_timeout=2).ping()
        except redis.exceptions.ConnectionError:
            return False
        return True

    def kill(self) -> None:
        """With all that was queued."""
        _kill_session(self.process)


def _postgres_bin() -> Path:
    path = shutil.which("postgres")
    candidates = [Path(path).parent] if path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder.resolve()
    raise FileNotFoundError("PostgreSQL's server programs (initdb, postgres) are not installed")


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    for pid in [*_children(process.pid), process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(word) for word in text.split()]
