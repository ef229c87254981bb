"""Others' activity on a canvas: recently changed ROIs, and people who have it open."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet, Sum
from django.utils import timezone

from portal.annotations.models import Roi, RoiQuerySet, VideoEvent
from portal.archive.models import Canvas, CanvasKind
from portal.labs.models import Membership, User
from portal.review.models import CanvasPresence

AWAY_S = 25.0  # two missed heartbeats, and some seconds for a slow network
OVERLAP_S = 15.0  # longer than a write takes: its time is set before the commit
MAX_CHANGES = 500  # beyond, the page loads its ROIs again
HUES = 8  # of the avatars: as many as tokens.css has


@dataclass(frozen=True, slots=True)
class RoiChanged:
    """An ROI that may differ from the page's copy."""

    id: uuid.UUID
    version: int
    is_deleted: bool
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Person:
    """Another person who has the canvas open.

    Attributes:
        hue: 0 to ``HUES`` - 1, the same on every page.
        view: left, top, right, bottom in level-0 pixels; None if it is unknown.
        roi: Id of their selected ROI.
    """

    id: uuid.UUID
    name: str
    initials: str
    hue: int
    view: tuple[float, ...] | None
    roi: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A tab of a user that shows the canvas."""

    tab: uuid.UUID
    person: Person


@dataclass(frozen=True, slots=True)
class CanvasNow:
    """State of a canvas for one page.

    Attributes:
        cursor: Cursor of the next request.
        has_more: More changed than are listed: read all ROIs.
        video_events: ``events_version`` of the canvas.
    """

    cursor: datetime
    changed: tuple[RoiChanged, ...]
    has_more: bool
    people: tuple[Person, ...]
    video_events: int


def canvas_now(user: User, canvas: Canvas, *, since: datetime, tab: uuid.UUID | None) -> CanvasNow:
    """Changes on a canvas since a time, and other people on it. The canvas must be visible.

    Changes of the last seconds before ``since`` are repeated, as one may have been committed late;
    pages recognise them by their version.

    Args:
        tab: The requesting page, which is excluded.
    """
    now = timezone.now()
    changed = changes_since(Roi.objects.visible_to(user), canvas.pk, since)
    has_more = len(changed) > MAX_CHANGES
    # Guests of a shared case only see people who share a lab with them.
    memberships = Membership.objects.visible_to(user)
    present = CanvasPresence.objects.not_hidden_from(user)
    pages = pages_open(present, canvas.pk, among=memberships, now=now)
    people = tuple(people_met(pages, user.pk, tab))
    events = events_version(VideoEvent.objects.visible_to(user), canvas.pk, kind=canvas.kind)
    return CanvasNow(now, tuple(changed[:MAX_CHANGES]), has_more, people, events)


def changes_since(rois: RoiQuerySet, canvas_id: uuid.UUID, since: datetime) -> list[RoiChanged]:
    """Changes of these ROIs, the newest first; one more than the limit if there are more."""
    rows = (
        rois.filter(canvas=canvas_id, updated_at__gte=since - timedelta(seconds=OVERLAP_S))
        .order_by("-updated_at", "id")
        .values_list("pk", "version", "deleted_at", "updated_at")[: MAX_CHANGES + 1]
    )
    return [
        RoiChanged(pk, version, deleted_at is not None, at) for pk, version, deleted_at, at in rows
    ]


def events_version(events: QuerySet[VideoEvent], canvas_id: uuid.UUID, *, kind: str) -> int:
    """Sum of the versions of a video's events: it differs after each write of one. One query.

    Args:
        kind: Of the canvas; 0 for one that is no video, without a query.
    """
    if kind != CanvasKind.VIDEO:
        return 0
    total = events.filter(canvas=canvas_id).order_by().aggregate(total=Sum("version"))["total"]
    return int(total or 0)


def pages_open(
    present: QuerySet[CanvasPresence],
    canvas_id: uuid.UUID,
    *,
    among: QuerySet[Membership],
    now: datetime,
) -> list[OpenPage]:
    """Pages that gave a sign of life, of these members, by name; of one user the newest first."""
    rows = (
        present.filter(
            canvas=canvas_id,
            seen_at__gte=now - timedelta(seconds=AWAY_S),
            user__in=among.values("user_id"),
        )
        .order_by("user__full_name", "user_id", "-seen_at")
        .values_list("tab", "user_id", "user__full_name", "user__email", "view", "roi_id")
    )
    return [
        OpenPage(tab, person_of(user_id, full_name or email, view=view, roi=roi))
        for tab, user_id, full_name, email, view, roi in rows
    ]


def people_met(
    pages: Iterable[OpenPage], user_id: uuid.UUID, tab: uuid.UUID | None
) -> Iterable[Person]:
    """People on the image without duplicates and without the requesting page."""
    listed = set[uuid.UUID]()
    for page in pages:
        person = page.person
        if person.id not in listed and (person.id, page.tab) != (user_id, tab):
            listed.add(person.id)
            yield person


def person_of(
    user_id: uuid.UUID, name: str, *, view: Sequence[float] | None, roi: uuid.UUID | None
) -> Person:
    """Person as displayed to others."""
    return Person(
        id=user_id,
        name=name,
        initials=initials_of(name),
        hue=user_id.int % HUES,
        view=tuple(view) if view else None,
        roi=roi,
    )


def initials_of(name: str) -> str:
    """``PW`` of ``Dr Paula Weiss``: first and last word, without titles."""
    words = [
        word
        for word in name.partition("@")[0].partition(",")[0].replace(".", " ").split()
        if word.lower() not in {"dr", "prof", "med"}
    ]
    if not words:
        return "?"
    return (words[0][0] + (words[-1][0] if len(words) > 1 else "")).upper()
