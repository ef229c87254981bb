"""Daily chores: once a day, each on its own feet."""

from __future__ import annotations

import threading

import pytest
from django.db import DatabaseError

from portal.core import housekeeping
from portal.core.errors import ConflictError
from portal.core.housekeeping import AGAIN_S, EVERY_S, FIRST_AFTER_S, Calendar


def test_chores_run_an_hour_after_the_start_and_then_daily(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(housekeeping, "_CHORES", {"sweep": lambda: ran.append("sweep")})
    calendar = Calendar(now_s=0)
    assert not calendar.run_due(now_s=FIRST_AFTER_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S)
    assert not calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S)
    assert ran == ["sweep", "sweep"]


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (OSError("disk full"), False),
        (ConflictError("not now"), False),
        (DatabaseError("gone"), True),  # the reaper has to know that it was away
        (ValueError("a defect"), True),
    ],
)
def test_a_chore_that_fails_keeps_no_other_and_is_tried_again_soon(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_told: bool
) -> None:
    ran: list[str] = []

    def fails() -> None:
        ran.append("fails")
        if ran.count("fails") == 1:
            raise error

    def run(now_s: float) -> list[str]:
        ran_before = len(ran)
        calendar.run_due(now_s=now_s)
        return ran[ran_before:]

    chores = {name: lambda name=name: ran.append(name) for name in ("before", "after")}
    monkeypatch.setattr(
        housekeeping,
        "_CHORES",
        {"before": chores["before"], "fails": fails, "after": chores["after"]},
    )
    calendar = Calendar(now_s=0)
    if is_told:
        with pytest.raises(type(error)):
            run(FIRST_AFTER_S)
    else:
        run(FIRST_AFTER_S)
    assert ran == ["before", "fails", "after"]
    assert run(FIRST_AFTER_S + AGAIN_S - 1) == []
    assert run(FIRST_AFTER_S + AGAIN_S) == ["fails"]
    assert run(FIRST_AFTER_S + EVERY_S) == ["before", "after"]
    assert run(FIRST_AFTER_S + AGAIN_S + EVERY_S) == ["fails"]


def test_in_a_pass_a_chore_that_fails_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def fails() -> None:
        raise DatabaseError("gone")

    chores = {"fails": fails, "next": lambda: ran.append("next")}
    monkeypatch.setattr(housekeeping, "_EACH_PASS", chores)
    with pytest.raises(DatabaseError, match="gone"):
        housekeeping.run_each_pass()
    assert ran == ["next"]


def test_the_archive_is_swept_daily() -> None:
    assert "archive sweep" in housekeeping._CHORES


def test_work_beside_that_fails_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reaper that no longer does half of its work must not go on as if it did."""
    stop, other_stopped = threading.Event(), threading.Event()

    def fails(_: threading.Event) -> None:
        raise ValueError("a defect")

    def waits(stop: threading.Event) -> None:
        stop.wait(10)
        other_stopped.set()

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(housekeeping, "_BESIDE", {"waits": waits, "fails": fails})
    for thread in housekeeping.beside_start(stop):
        thread.join(10)
    assert stop.is_set() and other_stopped.is_set()
    monkeypatch.undo()
    assert "webhooks" in housekeeping._BESIDE
