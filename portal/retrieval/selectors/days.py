"""Spans of days that a search can be narrowed to, and how the database counts them all at once.

The ends of all spans cut time into stretches; each region lies in one of them, and each stretch
lies in some of the spans as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from django.db.models import Count, Q
from django.utils import timezone

YEARS = 5  # that are offered singly, this one and those before; older ones together
_RECENT = (7, 30)
"""Days up to today."""


@dataclass(frozen=True, slots=True)
class Days:
    """Days on which regions were drawn, both included; None if it is open."""

    name: str
    since: date | None
    until: date | None

    @property
    def key(self) -> str:
        """Two dates with dots between them."""
        return f"{self.since or ''}..{self.until or ''}"


@dataclass(frozen=True, slots=True)
class Stretches:
    """Time, cut at ``starts``; ``keys[n]``: of the spans in which the stretch before start n lies;
    the last stretch comes after all of them."""

    starts: tuple[datetime, ...]
    keys: tuple[tuple[str, ...], ...]

    def counted(self, field: str) -> dict[str, Count]:
        """For the database: how many rows there are, and how many from each start on."""
        from_start = [Count("pk", filter=Q(**{f"{field}__gte": start})) for start in self.starts]
        return {f"from_{number}": one for number, one in enumerate([Count("pk"), *from_start])}

    def split(self, counted: Sequence[int]) -> tuple[int, ...]:
        """How many of them lie in each stretch."""
        return tuple(low - high for low, high in pairwise([*counted, 0]))

    def of(self, key: str) -> tuple[int, ...]:
        """The stretches that lie in a span; with "" all."""
        return tuple(number for number, keys in enumerate(self.keys) if not key or key in keys)


def days_offered(today: date, since: date | None, until: date | None) -> tuple[Days, ...]:
    """What is offered today, the newest first, and what is asked for if it is none of these."""
    found = [Days(f"Last {n} days", today - timedelta(days=n - 1), None) for n in _RECENT]
    years = range(today.year, today.year - YEARS, -1)
    found += [Days(str(year), date(year, 1, 1), date(year, 12, 31)) for year in years]
    first = years[-1]
    found.append(Days(f"Before {first}", None, date(first - 1, 12, 31)))
    asked = Days(_name(since, until), since, until)
    if (since or until) and asked.key not in {one.key for one in found}:
        found.insert(0, asked)
    return tuple(found)


def stretches_of(days: Sequence[Days]) -> Stretches:
    """Time cut at the ends of all of them."""
    ends = [(_begin(one.since), _end(one.until)) for one in days]
    starts = sorted({at for pair in ends for at in pair if at is not None})
    bounds: list[datetime | None] = [None, *starts, None]
    keys = [
        tuple(
            one.key
            for one, (begin, end) in zip(days, ends, strict=True)
            if (begin is None or (low is not None and low >= begin))
            and (end is None or (high is not None and high <= end))
        )
        for low, high in pairwise(bounds)
    ]
    return Stretches(tuple(starts), tuple(keys))


def midnight(day: date) -> datetime:
    """When a day begins, in the portal's time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def midnight_after(day: date) -> datetime | None:
    """When the day after begins; None after the last day that there is."""
    return midnight(day + timedelta(days=1)) if day < date.max else None


def _begin(day: date | None) -> datetime | None:
    return None if day is None else midnight(day)


def _end(day: date | None) -> datetime | None:
    return None if day is None else midnight_after(day)


def _name(since: date | None, until: date | None) -> str:
    if since and until:
        return f"{since} to {until}" if since != until else str(since)
    return f"From {since}" if since else f"Until {until}"
