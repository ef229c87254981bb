"""Recent changes on a canvas and the people who have it open, shared by all polling pages.

The data is visible to every member of the canvas' lab. Callers check that the user is a member, and
that nothing on the canvas is hidden (``portal.reader_studies.blinding``).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone

from portal.annotations.models import Roi, VideoEvent
from portal.archive.models import Canvas
from portal.labs.models import Membership
from portal.review.api.live_answers import (
    MAX_INCLUDED_CHARS,
    REPEAT_S,
    TaggedAnswer,
    change_text,
    included_rois,
    live_answer,
    person_text,
)
from portal.review.models import CanvasPresence
from portal.review.selectors.live import (
    MAX_CHANGES,
    OVERLAP_S,
    OpenPage,
    RoiChanged,
    changes_since,
    events_version,
    pages_open,
    people_met,
)

KEEP_S = 60.0  # several times ``live_answers.RENEWED_S``, the largest age of a cursor
RELOAD_EVERY_S = 5.0  # between reloads of a page while an import runs


@dataclass(frozen=True, slots=True)
class _RoiUpdate:
    """A change, and a time at which it was committed."""

    change: RoiChanged
    at: datetime
    roi: str | None


class LiveUpdates:
    """Live updates of one canvas. ``look`` reads the database, ``answer`` does not.

    A cursor is the time before a read. A change is sent to cursors from before the end of the read
    that found it, so none is missed, whichever process answered before.

    Attributes:
        lab_id: Lab of the canvas; None if it is no longer visible to anybody.
        looked_at: Time before the last read; None before the first.

    """

    def __init__(self, canvas_id: uuid.UUID) -> None:
        self.canvas_id = canvas_id
        self.lab_id: uuid.UUID | None = None
        self.looked_at: datetime | None = None
        self._from: datetime | None = None
        self._updates: dict[uuid.UUID, _RoiUpdate] = {}
        self._people: list[tuple[OpenPage, str]] = []
        self._events = 0
        self._flooded_at: datetime | None = None
        self._is_flood_sent = True

    def look(self) -> None:
        """Read new changes. Call in one thread at a time."""
        began = timezone.now()
        canvas = Canvas.objects.filter(pk=self.canvas_id).values_list("lab_id", "kind").first()
        self.lab_id, kind = canvas or (None, "")
        if self.lab_id is not None:
            members = Membership.objects.filter(lab=self.lab_id)
            present = CanvasPresence.objects.all()
            pages = pages_open(present, self.canvas_id, among=members, now=began)
            self._people = [(page, person_text(page.person)) for page in pages]
            self._look_at_rois(began)
            self._events = events_version(VideoEvent.objects.all(), self.canvas_id, kind=kind)
        self.looked_at = began

    def _look_at_rois(self, began: datetime) -> None:
        keep = timedelta(seconds=KEEP_S)
        since = self.looked_at or began - keep
        changes = changes_since(Roi.objects.all(), self.canvas_id, since)
        new = [roi_change for roi_change in changes[:MAX_CHANGES] if self._is_new(roi_change)]
        carried = included_rois(new)
        ended = timezone.now()
        for change in reversed(new):
            self._updates.pop(change.id, None)  # so that the newest come last
            roi = carried.get((change.id, change.version))
            self._updates[change.id] = _RoiUpdate(change, ended, roi)
        if self._from is None:
            # Late commits are among the changes from here on, unless there were too many.
            is_whole = len(changes) <= MAX_CHANGES
            self._from = since + timedelta(seconds=OVERLAP_S) if is_whole else ended
        elif new and len(changes) > MAX_CHANGES:
            self._is_flood_sent = False
        self._tell_flood(ended)
        self._forget(ended - keep)

    def _is_new(self, change: RoiChanged) -> bool:
        last_update = self._updates.get(change.id)
        return last_update is None or last_update.change.version < change.version

    def _tell_flood(self, now: datetime) -> None:
        last = self._flooded_at
        if not self._is_flood_sent and (
            last is None or now - last >= timedelta(seconds=RELOAD_EVERY_S)
        ):
            self._flooded_at, self._is_flood_sent = now, True

    def _forget(self, before: datetime) -> None:
        """Drop old changes, cursors that need them, and ROIs beyond the memory limit."""
        chars_left = MAX_INCLUDED_CHARS
        for update in reversed(list(self._updates.values())):
            number = update.change.id
            chars_left -= len(update.roi or "")
            if update.at < before:
                del self._updates[number]
                self._from = max(self._from or update.at, update.at)
            elif chars_left < 0 and update.roi is not None:
                self._updates[number] = replace(update, roi=None)

    def covers(self, since: datetime) -> bool:
        """Return whether all changes since then are in memory."""
        return self._from is not None and since >= self._from

    def answer(self, *, since: datetime, user_id: uuid.UUID, tab: uuid.UUID | None) -> TaggedAnswer:
        """Response to a page whose cursor is covered."""
        after = since - timedelta(seconds=REPEAT_S)
        news = [update for update in self._updates.values() if update.at > after]
        has_more = self._flooded_at is not None and self._flooded_at > after
        texts = {id(page.person): text for page, text in self._people}
        met = people_met((page for page, _ in self._people), user_id, tab)
        return live_answer(
            cursor=self.looked_at or since,
            changes=() if has_more else (change_text(update.change, update.roi) for update in news),
            people=(texts[id(person)] for person in met),
            has_more=has_more,
            video_events=self._events,
        )
