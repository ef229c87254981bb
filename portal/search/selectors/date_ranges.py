"""Date ranges that filter a search, and their counting in one database query.

The ends of all ranges split time into intervals; each region falls into one interval, and each
range is a union of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from django.db.models import Count, Q
from django.utils import timezone

YEARS = 5  # offered one by one, up to this year; older ones together
_RECENT = (7, 30)
"""Lengths of ranges up to today, in days."""


@dataclass(frozen=True, slots=True)
class DateRange:
    """Inclusive range of days on which regions were drawn; None for an open end."""

    name: str
    since: date | None
    until: date | None

    @property
    def key(self) -> str:
        """Text of both dates, joined by two dots."""
        return f"{self.since or ''}..{self.until or ''}"


@dataclass(frozen=True, slots=True)
class Intervals:
    """Time split at ``starts``.

    Attributes:
        starts: First moment of every interval but the first.
        keys: For each interval, the ranges that contain it.
    """

    starts: tuple[datetime, ...]
    keys: tuple[tuple[str, ...], ...]

    def counted(self, field: str) -> dict[str, Count]:
        """Aggregates: number of rows in total, and from each start on."""
        from_start = [Count("pk", filter=Q(**{f"{field}__gte": start})) for start in self.starts]
        return {f"from_{number}": count for number, count in enumerate([Count("pk"), *from_start])}

    def split(self, counted: Sequence[int]) -> tuple[int, ...]:
        """Number of rows in each interval."""
        return tuple(low - high for low, high in pairwise([*counted, 0]))

    def of(self, key: str) -> tuple[int, ...]:
        """Numbers of the intervals in a range; all for an empty key."""
        return tuple(number for number, keys in enumerate(self.keys) if not key or key in keys)


def date_ranges_offered(
    today: date, since: date | None, until: date | None
) -> tuple[DateRange, ...]:
    """Ranges offered today, newest first, and the requested range if it is none of them."""
    offered = [DateRange(f"Last {n} days", today - timedelta(days=n - 1), None) for n in _RECENT]
    years = range(today.year, today.year - YEARS, -1)
    offered += [DateRange(str(year), date(year, 1, 1), date(year, 12, 31)) for year in years]
    first = years[-1]
    offered.append(DateRange(f"Before {first}", None, date(first - 1, 12, 31)))
    requested = DateRange(_name(since, until), since, until)
    if (since or until) and requested.key not in {offered_range.key for offered_range in offered}:
        offered.insert(0, requested)
    return tuple(offered)


def intervals_of(ranges: Sequence[DateRange]) -> Intervals:
    """Intervals between the ends of all ranges."""
    ends = [(_begin(date_range.since), _end(date_range.until)) for date_range in ranges]
    starts = sorted({at for pair in ends for at in pair if at is not None})
    bounds: list[datetime | None] = [None, *starts, None]
    keys = [
        tuple(
            date_range.key
            for date_range, (begin, end) in zip(ranges, ends, strict=True)
            if (begin is None or (low is not None and low >= begin))
            and (end is None or (high is not None and high <= end))
        )
        for low, high in pairwise(bounds)
    ]
    return Intervals(tuple(starts), tuple(keys))


def midnight(day: date) -> datetime:
    """Start of a day in the portal's time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def midnight_after(day: date) -> datetime | None:
    """Start of the next day; None after the last possible date."""
    return midnight(day + timedelta(days=1)) if day < date.max else None


def _begin(day: date | None) -> datetime | None:
    return None if day is None else midnight(day)


def _end(day: date | None) -> datetime | None:
    return None if day is None else midnight_after(day)


def _name(since: date | None, until: date | None) -> str:
    if since and until:
        return f"{since} to {until}" if since != until else str(since)
    return f"From {since}" if since else f"Until {until}"
