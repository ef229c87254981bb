"""Processes that note and seal at the same time leave one whole chain for each lab."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests import databases, services

ROOT = Path(__file__).resolve().parents[3]
PROCESSES, ENTRIES = 3, 60
# Seals the rest and checks every link, then counts.
VERIFY = """
import django; django.setup()
from django.core.management import call_command
from portal.audit.models import AuditEntry, AuditSeal
call_command("audit_verify")
print(AuditEntry.objects.count(), AuditSeal.objects.count(),
      AuditSeal.objects.values("lab_id", "number").distinct().count())
"""


def _race(url: str) -> None:
    env = os.environ | {
        "TESSERA_DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.test",
        "PYTHONPATH": str(ROOT),
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    if not url.startswith("sqlite"):
        run("manage.py", "migrate", "--no-input", "--verbosity", "0")
    labs = [str(uuid.uuid4()), str(uuid.uuid4())]
    script = str(Path(__file__).with_name("race.py"))
    at_work = [
        subprocess.Popen([sys.executable, script, *labs, str(ENTRIES)], cwd=ROOT, env=env)
        for _ in range(PROCESSES)
    ]
    assert [process.wait(timeout=200) for process in at_work] == [0] * PROCESSES
    *heads, counts = run("-c", VERIFY).splitlines()
    wanted = PROCESSES * ENTRIES
    assert counts.split() == [str(wanted)] * 3
    assert {head.split(":")[0] for head in heads} == set(labs)
    assert sum(int(head.split(":")[1]) for head in heads) == wanted


@pytest.mark.slow
def test_many_processes_leave_one_chain_on_sqlite(tmp_path: Path) -> None:
    _race(databases.migrated(tmp_path / "race.sqlite3"))


@pytest.mark.services
@pytest.mark.slow
def test_many_processes_leave_one_chain_on_postgresql() -> None:
    with services.own_database() as url:
        _race(url)
