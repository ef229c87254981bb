"""Spans of days: what is offered, and in which of them a moment lies."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta

import pytest

from portal.retrieval.selectors.days import Days, days_offered, midnight, stretches_of

TODAY = date(2026, 11, 24)


def names_of(at: datetime, days: tuple[Days, ...]) -> list[str]:
    stretches = stretches_of(days)
    keys = stretches.keys[bisect_right(stretches.starts, at)]
    return [one.name for one in days if one.key in keys]


def test_recent_days_and_years_are_offered_the_newest_first() -> None:
    names = [one.name for one in days_offered(TODAY, None, None)]
    assert names == [
        *("Last 7 days", "Last 30 days", "2026", "2025", "2024", "2023", "2022"),
        "Before 2022",
    ]


@pytest.mark.parametrize(
    ("since", "until", "name"),
    [
        (date(2020, 1, 1), None, "From 2020-01-01"),
        (None, date(2020, 1, 1), "Until 2020-01-01"),
        (date(2020, 1, 1), date(2020, 1, 2), "2020-01-01 to 2020-01-02"),
        (date(2020, 1, 1), date(2020, 1, 1), "2020-01-01"),
    ],
)
def test_days_that_are_asked_for_come_first(
    since: date | None, until: date | None, name: str
) -> None:
    days = days_offered(TODAY, since, until)
    assert (days[0].name, len(days)) == (name, 9)


def test_a_span_that_is_offered_is_not_offered_twice() -> None:
    days = days_offered(TODAY, date(2025, 1, 1), date(2025, 12, 31))
    assert days == days_offered(TODAY, None, None)


@pytest.mark.parametrize(
    ("at", "names"),
    [
        (midnight(TODAY), ["Last 7 days", "Last 30 days", "2026"]),
        (midnight(TODAY - timedelta(6)), ["Last 7 days", "Last 30 days", "2026"]),
        (midnight(TODAY - timedelta(6)) - timedelta(seconds=1), ["Last 30 days", "2026"]),
        (midnight(TODAY - timedelta(30)), ["2026"]),
        (midnight(date(2022, 1, 1)), ["2022"]),
        (midnight(date(2022, 1, 1)) - timedelta(microseconds=1), ["Before 2022"]),
        (datetime(1990, 1, 1, tzinfo=UTC), ["Before 2022"]),
    ],
)
def test_a_moment_lies_in_the_spans_that_hold_its_day(at: datetime, names: list[str]) -> None:
    assert names_of(at, days_offered(TODAY, None, None)) == names


def test_the_last_day_there_is_has_no_end() -> None:
    days = (Days("all", date.min + timedelta(1), date.max), Days("to the last", None, date.max))
    assert names_of(datetime(2026, 1, 1, tzinfo=UTC), days) == ["all", "to the last"]


def test_spans_of_the_turn_of_a_year_overlap() -> None:
    days = days_offered(date(2026, 1, 3), None, None)
    assert names_of(midnight(date(2025, 12, 30)), days) == ["Last 7 days", "Last 30 days", "2025"]
