"""A migrated SQLite file without rows: made once, copied for each test that needs one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build/tests"


def migrated(path: Path) -> str:
    """Lay the file down at ``path``; its URL. A migration takes six seconds of a processor."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"migrated-{_state()}.sqlite3"
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _migrate(kept)
    shutil.copyfile(kept, path)
    return f"sqlite:///{path}"


def _migrate(kept: Path) -> None:
    for old in KEPT.glob("migrated-*"):
        old.unlink()
    begun = KEPT / "begun.sqlite3"
    begun.unlink(missing_ok=True)
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.test",
        "TESSERA_DATABASE_URL": f"sqlite:///{begun}",
    }
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    begun.rename(kept)


def _state() -> str:
    """Changes with any migration, the apps, and the versions of others' apps."""
    digest = hashlib.sha256()
    apps = [ROOT / "constraints.txt", ROOT / "portal/config/settings/base.py"]
    for path in [*sorted(ROOT.glob("portal/*/migrations/*.py")), *apps]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
