"""An import whose process is killed: by a worker it goes on, within a request it is taken back."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.killing.harness import Portal, children_of

CONTROL = "tests.killing.import_control"
COUNT = 9_600  # some seconds of work: both kills have to come before its end
pytestmark = [
    pytest.mark.endurance,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    made = Portal(tmp_path, f"sqlite:///{tmp_path / 'db.sqlite3'}", "filesystem://", lambda: None)
    made.env |= {"TESSERA_JOB_LEASE_S": "4"}  # a part takes one of it where all is busy
    yield made
    made.close()
    made.ask_no_more()


def now(portal: Portal) -> dict[str, Any]:
    reply: dict[str, Any] = portal.ask(CONTROL, "imported")
    return reply


def came_so_far(portal: Portal, count: int) -> bool:
    return bool(now(portal)["done"] > count)


def test_an_import_survives_the_kills_of_the_process_that_runs_it(portal: Portal) -> None:
    portal.ask(CONTROL, "stage", str(COUNT))
    worker = portal.start_worker(places=1)
    portal.start_reaper()
    seen = 0
    for _ in range(2):
        further = partial(came_so_far, portal, seen + 200)
        portal.wait_until(further, "parts of the import")
        for pid in children_of(worker.pid):
            os.kill(pid, signal.SIGKILL)
        killed = now(portal)
        seen = killed["done"]
        assert 0 < seen < COUNT
        assert (killed["live"], killed["revisions"], killed["created"]) == (seen, seen, seen)
    portal.wait_until(lambda: now(portal)["state"] == "succeeded", "the import to end")
    end = now(portal)
    assert (end["live"], end["revisions"], end["created"]) == (COUNT, COUNT, COUNT)
    assert end["lines"] == COUNT + 1


def test_the_import_of_a_killed_request_is_undone_by_the_reaper(portal: Portal) -> None:
    requested = portal.start([sys.executable, "-m", CONTROL, "at_once", str(COUNT)])
    portal.wait_until(lambda: now(portal)["live"] > 300, "half an import")
    requested.kill()
    requested.wait()
    half = now(portal)
    assert 300 < half["live"] < COUNT and not half["undone"]
    portal.ask(CONTROL, "silent")
    portal.start_reaper()
    portal.wait_until(lambda: now(portal)["undone"] and now(portal)["live"] == 0, "nothing of it")
    assert now(portal)["revisions"] == 2 * half["live"]  # the history tells of both
