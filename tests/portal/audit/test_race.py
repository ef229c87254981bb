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
PROCESSES, ENTRIES = 3, 30


def _race(url: str) -> None:
    env = os.environ | {
        "TESSERA_DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.test",
        "PYTHONPATH": str(ROOT),
    }

    labs = [str(uuid.uuid4()), str(uuid.uuid4())]
    script = str(Path(__file__).with_name("race.py"))
    done = subprocess.run(
        [sys.executable, script, str(PROCESSES), str(ENTRIES), *labs],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *heads, counts = done.stdout.splitlines()
    wanted = PROCESSES * ENTRIES
    assert counts.split() == [str(wanted)] * 3
    assert {head.split(":")[0] for head in heads} == set(labs)
    assert sum(int(head.split(":")[1]) for head in heads) == wanted


@pytest.mark.endurance
def test_many_processes_leave_one_chain_on_sqlite(tmp_path: Path) -> None:
    _race(databases.migrated(tmp_path / "race.sqlite3"))


@pytest.mark.services
@pytest.mark.endurance
def test_many_processes_leave_one_chain_on_postgresql() -> None:
    with services.own_database() as url:
        databases.migrate_server(url)
        _race(url)
