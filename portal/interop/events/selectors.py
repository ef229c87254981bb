"""The outbox, read on from a position: in order, each event once, none skipped.

Ids are given when an event is written and become visible when its transaction commits, so a lower
id may appear after a higher one. A reader does not pass a gap while a transaction that could fill
it may still be open; a gap that remains belongs to a transaction that was rolled back. PostgreSQL
tells which transactions write to the outbox: if none does, every id of a gap has been given up.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from portal.annotations.models import Roi
from portal.core.models import Event
from portal.jobs.models import Job
from portal.labs.models import ApiToken, Membership, TokenArea, User
from portal.reader_studies.blinding import events_unseen
from portal.webhooks.catalogue import waits

STREAMED: Mapping[str, TokenArea | None] = {
    "canvas.display_range_set": TokenArea.CASES,
    "canvas.modality_set": TokenArea.CASES,
    "canvas.scaled": TokenArea.CASES,
    "job.ended": None,
    "mosaic.failed": TokenArea.MOSAICS,
    "mosaic.finished": TokenArea.MOSAICS,
    "roi.commented": TokenArea.ROIS,
    "roi.deleted": TokenArea.ROIS,
    "roi.saved": TokenArea.ROIS,
    "rois.saved_in_bulk": TokenArea.ROIS,
    "slide.ready": TokenArea.CASES,
    "video.ready": TokenArea.CASES,
}
"""Types of events, and the area a token needs to hear of them; None: every token. Who reads what,
shares and deletions are for webhooks, which managers make."""
AT_ONCE = 500  # rows of the outbox looked at for one answer, of all labs: some milliseconds
_WRITERS = """
    SELECT EXISTS (
        SELECT 1 FROM pg_locks
        WHERE relation = to_regclass(%s) AND mode = 'RowExclusiveLock' AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND pid <> pg_backend_pid()
    )
"""
HOLE_S = 15.0  # longer than a write takes, as in ``portal.review``; older gaps are final


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter of an event stream.

    Attributes:
        types: Event types; empty for all.
        canvas_id: Only events that name this canvas.
        token: Token of the request; None for a session.
    """

    types: frozenset[str] = frozenset()
    canvas_id: uuid.UUID | None = None
    token: ApiToken | None = None

    def names(self) -> list[str]:
        """Event types that the reader may see and has requested."""
        return [
            name
            for name, area in STREAMED.items()
            if (not self.types or name in self.types)
            and (area is None or self.token is None or self.token.allows(area, writes=False))
        ]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the outbox.

    Attributes:
        events: what the reader may see of it, in order.
        until: the id it ends with, to continue from.
        has_more: more waits behind it already.
    """

    events: Sequence[Event]
    until: int
    has_more: bool


def event_latest() -> int:
    """Id of the newest event: the position of a new reader."""
    newest: int | None = Event.objects.order_by("-id").values_list("id", flat=True).first()
    return newest or 0


def event_stretch(user: User, after: int, filters: EventFilter) -> Stretch:
    """Events after an id, of the user's labs, without those that are hidden from the user."""
    rows = _ids_after(after)
    until = _last_settled_id(after, rows, timezone.now())
    if rows and until < rows[-1][0] and not _is_being_written():
        ended, rows = rows[-1][0], _ids_after(after)
        until = _last_settled_id(after, rows, timezone.now(), ended=ended)
    visible_events: list[Event] = []
    if until > after:
        memberships = Membership.objects.of(user).values("lab_id")
        rows_of = Event.objects.filter(id__gt=after, id__lte=until, lab_id__in=memberships)
        events = [
            event
            for event in rows_of.filter(name__in=filters.names()).order_by("id")
            if waits(event.name, event.payload) and _is_on(event, filters.canvas_id)
        ]
        hidden = _hidden_event_ids(user, events)
        visible_events = [event for event in events if event.pk not in hidden]
    is_cut = bool(rows) and until == rows[-1][0] and len(rows) == AT_ONCE
    return Stretch(visible_events, until, is_cut)


def _ids_after(after: int) -> list[tuple[int, datetime]]:
    rows = Event.objects.filter(id__gt=after).order_by("id")
    return list(rows.values_list("id", "created_at")[:AT_ONCE])


def _is_being_written() -> bool:
    """Return whether a transaction is open that has written an event, or is about to.

    Each holds the lock of the table from before it takes an id until it ends.
    """
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [Event._meta.db_table])
        return bool(cursor.fetchone()[0])


def _last_settled_id(
    after: int, rows: Sequence[tuple[int, datetime]], now: datetime, *, ended: int = 0
) -> int:
    """Last id before a gap that may still be filled.

    Args:
        rows: Ids, ascending, with their times, as they are there now.
        ended: Every transaction that took an id up to this had ended before ``rows`` were read.
    """
    hole_time = timedelta(seconds=HOLE_S)
    until = after
    for pk, at in rows:
        if pk != until + 1 and pk > ended and now - hole_time < at < now + hole_time:
            break
        until = pk
    return until


def _is_on(event: Event, canvas_id: uuid.UUID | None) -> bool:
    if canvas_id is None:
        return True
    return str(canvas_id) in (event.payload.get("canvas_id"), event.payload.get("target_id"))


def _hidden_event_ids(user: User, events: Sequence[Event]) -> set[int]:
    """Ids of events that a blinded reading hides from everybody or from this user."""
    unseen = events_unseen(events)
    regions = _ids(events, "roi_id")
    jobs = _ids(events, "job_id")
    hidden_ids: set[Any] = set()
    for ids, rows in ((regions, Roi.all_objects), (jobs, Job.objects)):
        if ids:
            hidden_rows = rows.filter(pk__in=ids).hidden_from(user)
            hidden_ids |= set(hidden_rows.values_list("pk", flat=True))
    hidden = {str(row_id) for row_id in hidden_ids}
    return unseen | {
        event.pk
        for event in events
        if event.payload.get("roi_id") in hidden or event.payload.get("job_id") in hidden
    }


def _ids(events: Sequence[Event], key: str) -> Collection[str]:
    return {event.payload[key] for event in events if event.payload.get(key)}
