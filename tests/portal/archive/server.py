"""A real web server on a database and a storage of its own, for tests over sockets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import databases
from tests.ports import HOST, free_port
from tests.processes import wait_until_served

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Server:
    """A running server: its port, environment, storage and process."""

    port: int
    env: dict[str, str]
    storage: Path
    process: subprocess.Popen[bytes]

    def python(self, code: str) -> str:
        """Run code with the portal's models at hand; what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", f"import django; django.setup()\n{code}"],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()

    def peak_mb(self) -> float:
        """The most memory that one of its processes has held."""
        pids = [self.process.pid]
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids += [int(pid) for pid in children.read_text().split()]
        return max(_peak_kib(pid) for pid in pids) / 1024


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[Server]:
    """One web process, as ``manage.py serve`` starts it."""
    (folder / "storage").mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DEBUG": "0",
        "TESSERA_DATABASE_URL": databases.migrated(folder / "db.sqlite3"),
        "TESSERA_STORAGE": str(folder / "storage"),
        "TESSERA_BROKER_FOLDER": str(folder / "broker"),
        "TESSERA_LOG_LEVEL": "WARNING",
        "TMPDIR": str(folder / "tmp"),
        **variables,
    }
    port = free_port()
    command = [sys.executable, "manage.py", "web", "--host", HOST, "--port", str(port)]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
    try:
        wait_until_served(process, f"http://{HOST}:{port}/healthz")
        yield Server(port, env, folder / "storage", process)
    finally:
        process.terminate()
        process.wait(15)


def files_below(folder: Path) -> list[str]:
    """Every file of some content."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size
    ]
