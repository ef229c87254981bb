"""The machine is lost in the middle of work; what was answered before the backup comes back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from portal.operations.processes import worker
from tests import services
from tests.killing.harness import ROOT, Portal
from tests.polling import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(600)]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def portal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Portal]:
    """A portal of its own on each database."""
    if request.param == "sqlite":
        yield from _portal(tmp_path, f"sqlite:///{tmp_path / 'db.sqlite3'}")
        return
    with services.own_database() as url:
        yield from _portal(tmp_path, url)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Portal]:
    yield from _portal(tmp_path, f"sqlite:///{tmp_path / 'db.sqlite3'}")


def _portal(folder: Path, url: str) -> Iterator[Portal]:
    made = Portal(folder, url, "filesystem://", lambda: None)
    yield made
    made.close()
    made.ask_no_more()


def test_records_answered_before_the_backup_survive_the_loss_of_the_machine(
    portal: Portal, tmp_path: Path
) -> None:
    log, repository = tmp_path / "answers.jsonl", tmp_path / "backups"
    _machine(portal, "make", str(tmp_path))
    _start_worker(portal)
    _until_ready(portal)
    _machine(portal, "draw")
    _until_ready(portal)
    assert _machine(portal, "manage", "backup", str(repository))["error"] is None
    work = portal.start([sys.executable, "-m", "tests.killing.machine", "write", "600", str(log)])
    wait_until(
        lambda: log.exists() and len(log.read_text().splitlines()) > 20, "answers", within_s=120
    )
    began = time.time()
    portal.call("manage.py", "backup", str(repository), "--keep", "2")
    assert work.poll() is None, "the lab stopped working before the backup had ended"
    before = _machine(portal, "look", str(log), str(began))
    assert before["lost"] == []
    _lose(portal)
    portal.call("manage.py", "restore", str(repository))
    after = _machine(portal, "look", str(log), str(began))
    assert after["answered"] > 20
    assert after["lost"] == []
    for same in ("people", "password", "rois", "viewer", "tile", "frames", "hits"):
        assert after[same] == before[same], same
    assert (before["viewer"], before["tile"][0], before["frames"]) == (200, 200, 12)
    assert len(after["hits"]) == 10
    _goes_on(portal, repository)


def _goes_on(portal: Portal, repository: Path) -> None:
    """Work left in the queue is done, a second restore is refused, the next backup is small."""
    _start_worker(portal)
    portal.start_reaper()
    _until_ready(portal)
    refused = _machine(portal, "manage", "restore", str(repository))
    assert "only into an empty installation" in refused["error"]
    third = _machine(portal, "manage", "backup", str(repository), "--keep", "1")
    assert (third["error"], "removed" in third["said"]) == (None, True), third
    assert _machine(portal, "manage", "backup", str(repository), "--verify")["error"] is None


def test_a_damaged_backup_leaves_an_empty_installation_as_it_is(
    on_sqlite: Portal, tmp_path: Path
) -> None:
    """Files are compared before any database is touched, so one database is enough."""
    portal = on_sqlite
    repository = tmp_path / "backups"
    _machine(portal, "make", str(tmp_path))
    assert _machine(portal, "manage", "backup", str(repository))["error"] is None
    _lose(portal)
    damaged = max((repository / "objects").glob("*/*"), key=lambda path: path.stat().st_size)
    content = damaged.read_bytes()
    damaged.chmod(0o640)
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused = _run(portal, "manage.py", "restore", str(repository))
    assert refused.returncode == 1
    assert damaged.name in refused.stderr.decode()
    damaged.write_bytes(content)
    portal.call("manage.py", "restore", str(repository))


def _machine(portal: Portal, *arguments: str) -> Any:
    return portal.ask("tests.killing.machine", *arguments)


def _run(portal: Portal, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=portal.env, capture_output=True, check=False)


def _start_worker(portal: Portal) -> None:
    """Start a worker of the queue that needs no torch; the test makes the vectors."""
    command = ["default" if part == "default,gpu" else part for part in worker().command]
    portal.start(command)


def _until_ready(portal: Portal) -> None:
    wait_until(lambda: _machine(portal, "ready"), "the worker", within_s=120)


def _lose(portal: Portal) -> None:
    """Processes, database, files and broker are gone at once."""
    portal.close()
    portal.ask_no_more()
    portal.processes.clear()
    shutil.rmtree(portal.folder / "storage")
    (portal.folder / "broker").mkdir()
    for path in portal.folder.glob("db.sqlite3*"):
        path.unlink()
    if portal.database_url.startswith("postgres"):
        name = portal.database_url.rpartition("/")[2]
        with psycopg.connect(services.POSTGRES, autocommit=True) as server:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            server.execute(f'CREATE DATABASE "{name}"')
    assert "TESSERA_STORAGE" in portal.env
    assert not Path(portal.env["TESSERA_STORAGE"]).exists()
