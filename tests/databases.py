"""A migrated database without rows: made once, copied for each test that needs one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build/tests"


def migrated(path: Path) -> str:
    """Lay an SQLite file down at ``path``; its URL. To migrate takes six seconds of a processor."""
    with _cached_database("sqlite3") as cached:
        if not cached.exists():
            unfinished = CACHE / "begun.sqlite3"
            unfinished.unlink(missing_ok=True)
            _migrate(f"sqlite:///{unfinished}")
            unfinished.rename(cached)
    shutil.copyfile(cached, path)
    return f"sqlite:///{path}"


def migrate_server(url: str) -> None:
    """The same in an empty database of PostgreSQL, out of a dump of the one migrated first."""
    with _cached_database("sql") as cached:
        if not cached.exists():
            _migrate(url)
            if text := _dump(url):
                cached.write_text(text)
            return
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(cached.read_bytes())


@contextmanager
def _cached_database(ending: str) -> Iterator[Path]:
    """Lock the cached database of these migrations, remove older ones, and yield its path."""
    CACHE.mkdir(parents=True, exist_ok=True)
    cached = CACHE / f"migrated-{_state()}.{ending}"
    with (CACHE / f"lock-{ending}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in set(CACHE.glob(f"migrated-*.{ending}")) - {cached}:
            old.unlink()
        yield cached


def _migrate(url: str) -> None:
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.test",
        "TESSERA_DATABASE_URL": url,
    }
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)


def _dump(url: str) -> str:
    """SQL statements without those for ``psql``; nothing if ``pg_dump`` is missing or older
    than the server.
    """
    if shutil.which("pg_dump") is None:
        return ""
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines(keepends=True) if done.returncode == 0 else []
    return "".join(line for line in lines if not line.startswith("\\"))


def _state() -> str:
    """Changes with any migration, the apps, and the versions of others' apps."""
    digest = hashlib.sha256()
    apps = [ROOT / "constraints.txt", ROOT / "portal/config/settings/base.py"]
    for path in [*sorted(ROOT.glob("portal/*/migrations/*.py")), *apps]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
