"""The import of a whole case whose process is killed: nothing shows, and the next one goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.killing.harness import Portal, children_of

CONTROL, COUNT = "tests.killing.crates.control", 24
IMPORT = ["manage.py", "case_import", "--lab", "crates", "--user", "crates@kill.example"]
pytestmark = [
    pytest.mark.endurance,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture
def portals(tmp_path: Path) -> Iterator[list[Portal]]:
    """One to export from, one to import into."""
    made = []
    for name in ("from", "to"):
        folder = tmp_path / name
        folder.mkdir()
        made.append(Portal(folder, f"sqlite:///{folder / 'db.sqlite3'}", "filesystem://", _none))
    yield made
    for portal in made:
        portal.close()
        portal.ask_no_more()


def _none() -> None:
    """No broker to empty."""


def came(portal: Portal) -> dict[str, Any]:
    reply: dict[str, Any] = portal.ask(CONTROL, "came")
    return reply


def test_after_repeated_kills_a_case_is_imported_completely_or_not_at_all(
    portals: list[Portal], tmp_path: Path
) -> None:
    origin, target = portals
    hashes = origin.ask(CONTROL, "make", str(COUNT), str(tmp_path / "case.zip"))
    target.ask(CONTROL, "lab")
    taken = 0
    for more in (1, 6, 9):
        process = target.start([sys.executable, *IMPORT, str(tmp_path / "case.zip")])
        min_count = taken + more
        target.wait_until(lambda n=min_count: came(target)["taken"] >= n, "files", within_s=120)  # type: ignore[misc]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        half = came(target)
        assert min_count <= half["taken"] < COUNT
        assert (half["cases"], half["slides"], half["jobs"], half["placed"]) == (0, 0, 0, [])
        taken = half["taken"]
    assert f"{COUNT} new originals" in target.call(*IMPORT, str(tmp_path / "case.zip"))
    end = came(target)
    assert (end["cases"], end["slides"], end["jobs"]) == (1, COUNT, COUNT)
    assert end["assets"] == end["placed"] == hashes
    assert (end["odd"], end["taken"]) == ([], 0)
    assert "already here" in target.call(*IMPORT, str(tmp_path / "case.zip"))


def test_a_crate_that_was_sent_survives_the_kills_of_the_process_that_imports_it(
    portals: list[Portal], tmp_path: Path
) -> None:
    origin, target = portals
    hashes = origin.ask(CONTROL, "make", str(COUNT), str(tmp_path / "case.zip"))
    target.ask(CONTROL, "lab")
    target.ask(CONTROL, "send", str(tmp_path / "case.zip"))
    worker = target.start_worker(places=1)
    target.start_reaper()
    taken = 0
    for more in (2, 5):
        min_count = taken + more
        target.wait_until(
            lambda n=min_count: came(target)["taken"] >= n,  # type: ignore[misc]
            "files",
        )
        for pid in children_of(worker.pid):
            os.kill(pid, signal.SIGKILL)
        half = came(target)
        assert min_count <= half["taken"] < COUNT
        assert (half["cases"], half["slides"], half["jobs"], half["placed"]) == (0, 0, 0, [])
        assert (half["import"], half["sent"]) == ("running", 1)
        taken = half["taken"]
    target.wait_until(lambda: came(target)["import"] == "succeeded", "the import")
    target.wait_until(lambda: came(target)["sent"] == 0, "the crate's bytes to go")
    end = came(target)
    assert (end["cases"], end["slides"]) == (1, COUNT) and end["jobs"] >= COUNT
    assert end["assets"] == hashes and set(hashes) <= {*end["placed"]}
    assert end["taken"] == 0
