"""Daily chores: once a day, each on its own feet."""

from __future__ import annotations

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
