"""Daily chores: once a day, each on its own feet."""

from __future__ import annotations

import threading

import pytest

from portal.core import housekeeping
from portal.core.housekeeping import EVERY_S, FIRST_AFTER_S, Calendar


def test_chores_run_an_hour_after_the_start_and_then_daily(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(housekeeping, "_CHORES", {"sweep": lambda: ran.append("sweep")})
    calendar = Calendar(now_s=0)
    assert not calendar.run_due(now_s=FIRST_AFTER_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S)
    assert not calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S)
    assert ran == ["sweep", "sweep"]


def test_a_chore_that_fails_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def full() -> None:
        raise OSError("disk full")

    chores = {"full": full, "next": lambda: ran.append("next")}
    monkeypatch.setattr(housekeeping, "_CHORES", chores)
    Calendar(now_s=0).run_due(now_s=FIRST_AFTER_S)
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
