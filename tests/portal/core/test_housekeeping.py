"""Daily chores: once a day, each on its own feet."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from portal.core import housekeeping
from portal.core.errors import ConflictError
from portal.core.housekeeping import AGAIN_S, EVERY_S, FIRST_AFTER_S, Calendar
from portal.core.registry import Registry


def test_chores_run_an_hour_after_the_start_and_then_daily(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(housekeeping, "DAILY", Registry({"sweep": (lambda: ran.append("sweep"),)}))
    calendar = Calendar(now_s=0)
    assert not calendar.run_due(now_s=FIRST_AFTER_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S)
    assert not calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S - 1)
    assert calendar.run_due(now_s=FIRST_AFTER_S + EVERY_S)
    assert ran == ["sweep", "sweep"]


@pytest.mark.parametrize(
    ("error", "is_reported"),
    [
        (OSError("disk full"), False),
        (ConflictError("not now"), False),
        (DatabaseError("gone"), True),  # the reaper has to know that it was away
        (ValueError("a defect"), True),
    ],
)
def test_a_failing_chore_stops_no_other_and_is_retried(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_reported: bool
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
        "DAILY",
        Registry({"before": (chores["before"],), "fails": (fails,), "after": (chores["after"],)}),
    )
    calendar = Calendar(now_s=0)
    if is_reported:
        with pytest.raises(type(error)):
            run(FIRST_AFTER_S)
    else:
        run(FIRST_AFTER_S)
    assert ran == ["before", "fails", "after"]
    assert run(FIRST_AFTER_S + AGAIN_S - 1) == []
    assert run(FIRST_AFTER_S + AGAIN_S) == ["fails"]
    assert run(FIRST_AFTER_S + EVERY_S) == ["before", "after"]
    assert run(FIRST_AFTER_S + AGAIN_S + EVERY_S) == ["fails"]


def test_a_failing_chore_stops_no_other_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def fails() -> None:
        raise DatabaseError("gone")

    chores = Registry({"fails": (fails,), "next": (lambda: ran.append("next"),)})
    monkeypatch.setattr(housekeeping, "EACH_PASS", chores)
    with pytest.raises(DatabaseError, match="gone"):
        housekeeping.run_each_pass()
    assert ran == ["next"]


def test_the_archive_is_swept_daily() -> None:
    assert housekeeping.DAILY.all("archive sweep")
