"""The portal under chaos: ``manage.py serve`` on servers of the run's own, and its processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests import databases
from tests.chaos.clusters import Postgres, Redis
from tests.polling import wait_until
from tests.ports import HOST, free_port

ROOT = Path(__file__).resolve().parents[2]
VOLUME_MB = 512  # of the storage, where it can be a volume that fills up


class Portal:
    """One portal with all it needs, below one folder.

    Args:
        has_volume: the storage is a small volume of its own, where one can be mounted.
    """

    def __init__(self, folder: Path, *, has_volume: bool = True) -> None:
        self.folder = folder
        self.output = folder / "serve.log"
        self.clock = folder / "clock.json"
        self.clock.write_text("{}")
        self.storage = folder / "storage"
        self.storage.mkdir()
        self.has_volume = has_volume and _mount(self.storage)
        self.postgres, self.redis = Postgres(folder), Redis(folder)
        self.port = free_port()
        self.starts = 0
        self.env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "TESSERA_DEBUG": "0",
            "TESSERA_CHAOS_CLOCK": str(self.clock),
            "TESSERA_DATABASE_URL": self.postgres.url,
            "TESSERA_BROKER_URL": self.redis.url,
            "TESSERA_STORAGE": str(self.storage),
            "TESSERA_JOB_LEASE_S": "10",
            "TESSERA_JOB_REAP_EVERY_S": "1",
            "TESSERA_JOB_RESEND_AFTER_S": "5",
            "TESSERA_RESERVE_BYTES": str(8 * 2**20),  # of a volume of half a GiB
            "OMP_NUM_THREADS": "1",
        }
        self.postgres.wait()
        self.redis.wait()
        databases.migrate_server(self.postgres.url)

    @property
    def url(self) -> str:
        """Address of the portal."""
        return f"http://{HOST}:{self.port}"

    def control(self, command: str) -> Any:
        """See ``tests.chaos.control``."""
        return json.loads(self._call("-m", "tests.chaos.control", command))

    def moving(self) -> int:
        """Number of jobs that wait or run."""
        query = "SELECT count(*) FROM jobs_job WHERE state IN ('queued', 'running')"
        with psycopg.connect(self.postgres.url) as database:
            row = database.execute(query).fetchone()
        return int(row[0]) if row else 0

    def heads(self) -> list[str]:
        """The chains' heads as ``audit_verify`` takes them; read past the portal, as it is away."""
        query = (
            "SELECT DISTINCT ON (lab_id) lab_id, number, hash FROM audit_auditseal"
            " ORDER BY lab_id, number DESC"
        )
        with psycopg.connect(self.postgres.url) as database:
            return [f"{lab}:{number}:{sha}" for lab, number, sha in database.execute(query)]

    def audit(self, heads: list[str]) -> list[str]:
        """Errors found by ``audit_verify``, also against saved heads."""
        expected = [word for head in heads for word in ("--expect", head)]
        done = self._done("manage.py", "audit_verify", *expected)
        return [] if done.returncode == 0 else [f"audit: {done.stderr.decode()[-1000:]}"]

    def errors(self) -> str:
        """Last error messages of the log, with their tracebacks."""
        text = self.output.read_text(encoding="utf-8", errors="replace")
        parts = re.split(r"(?=^\d\d:\d\d:\d\d)", text, flags=re.MULTILINE)
        return "".join(part for part in parts if "Traceback" in part)[-6000:]

    def start(self) -> None:
        """Start the tree."""
        self.starts += 1
        with self.output.open("ab") as output:
            self.tree = subprocess.Popen(
                [sys.executable, "-u", "manage.py", "serve", "--port", str(self.port)],
                cwd=ROOT,
                env=self.env,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def keep(self) -> None:
        """Start the tree again where it ended, as an init system does."""
        if self.tree.poll() is not None:
            self.start()

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until every part reports that it is ready; restart the tree if it ends."""
        wait_until(self._is_ready, "the portal", within_s=seconds, every_s=0.5, detail=self.tail)

    def _is_ready(self) -> bool:
        self.keep()
        with suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{self.url}/readyz", timeout=5).close()
            return True
        return False

    def pids(self, role: str) -> list[int]:
        """Processes of a role: web, worker, reaper (the parents), worker-child."""
        parent, _, child = role.partition("-")
        words = {"web": ("manage.py web",), "worker": ("celery",)}
        result = [
            pid
            for pid in children(self.tree.pid)
            if any(word in command(pid) for word in words.get(parent, (parent,)))
        ]
        return [pid for top in result for pid in children(top)] if child else result

    def stop(self) -> None:
        """Everything, at once: its processes die with their parent."""
        self.tree.kill()
        self.tree.wait()
        self.postgres.kill()
        self.redis.kill()
        if self.has_volume:
            subprocess.run(["umount", "--lazy", str(self.storage)], check=False)

    def tail(self) -> str:
        """Last lines of the portal's log."""
        return self.output.read_text(errors="replace")[-4000:]

    def _call(self, *arguments: str) -> str:
        done = self._done(*arguments)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return done.stdout.decode()

    def _done(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.env, capture_output=True, check=False
        )


def children(pid: int) -> list[int]:
    """Living children of a process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def command(pid: int) -> str:
    """The command line of a process, empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _mount(folder: Path) -> bool:
    """A small volume that can be filled; False where this process may not mount one."""
    if shutil.which("mount") is None or os.geteuid() != 0:
        return False
    options = ["-t", "tmpfs", "-o", f"size={VOLUME_MB}m", "tmpfs", str(folder)]
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
