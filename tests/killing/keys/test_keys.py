"""A request under a key whose process is killed: it is never done twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.killing.harness import Portal

CONTROL = "tests.killing.keys.control"
WAITS_S = 5
"""For a write beside a request that hangs: less than SQLite would wait for its transaction."""
pytestmark = pytest.mark.endurance


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def portal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Portal]:
    def ready(url: str) -> Iterator[Portal]:
        made = Portal(tmp_path, url, "filesystem://", lambda: None)
        made.ask(CONTROL, "send", "cases", "the-first-one")
        yield made
        made.close()
        made.ask_no_more()

    if request.param == "sqlite":
        yield from ready(f"sqlite:///{tmp_path / 'db.sqlite3'}")
        return
    with services.own_database() as url:
        yield from ready(url)


def killed(portal: Portal, kind: str, key: str, where: str, *, is_seen_by_others: bool) -> None:
    """Send it, wait until it hangs, look from another process, kill it."""
    before = portal.output.read_text().count("stuck") if portal.output.exists() else 0
    process = portal.start([sys.executable, "-m", CONTROL, "hang", kind, key, where])
    portal.wait_until(
        lambda: portal.output.read_text().count("stuck") > before, "a request that hangs"
    )
    if is_seen_by_others:
        reply = ask(portal, kind, key)
        assert (reply["status"], reply["code"]) == (409, "request-running")
        assert int(reply["retry_after"]) > 0
        other = ask(portal, "cases", f"beside-{where}")
        assert (other["status"], other["seconds"] < WAITS_S) == (201, True), other
    process.kill()
    process.wait()


def ask(portal: Portal, kind: str, key: str) -> dict[str, Any]:
    reply: dict[str, Any] = portal.ask(CONTROL, "send", kind, key)
    return reply


def test_a_killed_request_has_one_effect_and_blocks_no_other(portal: Portal) -> None:
    killed(portal, "invitations", "killed-before", "before", is_seen_by_others=True)
    reply = ask(portal, "invitations", "killed-before")
    assert (reply["status"], reply["code"]) == (409, "request-running"), "its key is held a while"
    portal.ask(CONTROL, "run_out")
    assert portal.ask(CONTROL, "made")["invitations"] == 0
    for _ in range(2):
        assert ask(portal, "invitations", "killed-before")["status"] == 201
    assert portal.ask(CONTROL, "made")["invitations"] == 1


def test_a_request_that_is_killed_after_it_wrote_is_not_done_again(portal: Portal) -> None:
    killed(portal, "invitations", "killed-after", "after", is_seen_by_others=True)
    portal.ask(CONTROL, "run_out")
    reply = ask(portal, "invitations", "killed-after")
    assert (reply["status"], reply["code"]) == (409, "answer-not-stored")
    assert portal.ask(CONTROL, "made")["invitations"] == 1
    killed(portal, "cases", "killed-within", "within", is_seen_by_others=False)
    assert portal.ask(CONTROL, "made")["cases"] == 2, "the work and its answer are one transaction"
    assert ask(portal, "cases", "killed-within")["status"] == 201
    assert portal.ask(CONTROL, "made")["cases"] == 3
