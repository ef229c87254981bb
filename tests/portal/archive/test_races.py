"""The same bytes uploaded and deleted at once, by real processes: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import databases, services

ROOT = Path(__file__).resolve().parents[3]
TRIES = 12  # the defect it was made for lost four tries of ten


def _race(folder: Path, database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.portal.archive.racing", str(TRIES)],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
            "TESSERA_DATABASE_URL": database_url,
            "TESSERA_STORAGE": str(folder / "storage"),
            "TESSERA_BROKER_URL": "memory://",
            "TESSERA_LOG_LEVEL": "WARNING",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    data = json.loads(done.stdout)
    assert data["outcomes"] == {"202 204": TRIES}, data
    assert data["slides"] == TRIES, data  # those of the trash went, all new ones are there
    assert data["lost"] == 0, data


@pytest.mark.slow
@pytest.mark.endurance
def test_no_file_is_lost_on_sqlite(tmp_path: Path) -> None:
    _race(tmp_path, databases.migrated(tmp_path / "db.sqlite3"))


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.endurance
def test_no_file_is_lost_on_postgresql(tmp_path: Path) -> None:
    with services.own_database() as url:
        databases.migrate_server(url)
        _race(tmp_path, url)
