"""Date ranges: the choices, and the range that contains a given time."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta

import pytest

from portal.search.selectors.date_ranges import (
    DateRange,
    date_ranges_offered,
    intervals_of,
    midnight,
)

TODAY = date(2026, 11, 24)


def names_of(at: datetime, ranges: tuple[DateRange, ...]) -> list[str]:
    stretches = intervals_of(ranges)
    keys = stretches.keys[bisect_right(stretches.starts, at)]
    return [bounds.name for bounds in ranges if bounds.key in keys]


def test_recent_days_and_years_are_offered_the_newest_first() -> None:
    names = [choice.name for choice in date_ranges_offered(TODAY, None, None)]
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
def test_a_requested_range_comes_first(since: date | None, until: date | None, name: str) -> None:
    ranges = date_ranges_offered(TODAY, since, until)
    assert (ranges[0].name, len(ranges)) == (name, 9)


def test_a_requested_standard_range_is_offered_once() -> None:
    ranges = date_ranges_offered(TODAY, date(2025, 1, 1), date(2025, 12, 31))
    assert ranges == date_ranges_offered(TODAY, None, None)


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
def test_a_time_is_in_the_ranges_that_contain_its_day(at: datetime, names: list[str]) -> None:
    assert names_of(at, date_ranges_offered(TODAY, None, None)) == names


def test_the_last_possible_day_has_no_end() -> None:
    ranges = (
        DateRange("all", date.min + timedelta(1), date.max),
        DateRange("to the last", None, date.max),
    )
    assert names_of(datetime(2026, 1, 1, tzinfo=UTC), ranges) == ["all", "to the last"]


def test_ranges_at_the_turn_of_a_year_overlap() -> None:
    ranges = date_ranges_offered(date(2026, 1, 3), None, None)
    assert names_of(midnight(date(2025, 12, 30)), ranges) == ["Last 7 days", "Last 30 days", "2025"]
