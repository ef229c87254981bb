"""What others do on a canvas: which ROIs changed lately, and who has it open."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.labs.models import Membership, User
from portal.review.models import CanvasPresence

AWAY_S = 25.0  # two signs of life were missed, with some seconds for a slow network
OVERLAP_S = 15.0  # a change is stamped before it is committed: longer than a write may take
MOST_CHANGES = 500  # beyond, the page loads its ROIs again
HUES = 8  # of the avatars: as many as tokens.css has


@dataclass(frozen=True, slots=True)
class RoiChanged:
    """An ROI that differs from what a page may hold."""

    id: uuid.UUID
    version: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody else who has the canvas open.

    Attributes:
        hue: 0 to ``HUES`` - 1, the same on every page.
        view: left, top, right, bottom in level-0 pixels; None where it is not told.
        roi: the one they have chosen.
    """

    id: uuid.UUID
    name: str
    initials: str
    hue: int
    view: tuple[float, ...] | None
    roi: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class CanvasNow:
    """The state of a canvas for one page.

    Attributes:
        cursor: to ask from, next time.
        has_more: more changed than are listed: read them all.
    """

    cursor: datetime
    changed: tuple[RoiChanged, ...]
    has_more: bool
    people: tuple[Person, ...]

    @property
    def etag(self) -> str:
        """Of everything but the time."""
        told = repr((self.changed, self.has_more, self.people))
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def canvas_now(user: User, canvas: Canvas, *, since: datetime, tab: uuid.UUID | None) -> CanvasNow:
    """What changed on a canvas since, and who else looks at it. Call with a canvas found visible.

    Changes of the last seconds before ``since`` are told once more, as one may have been committed
    late; a page knows them by their version.

    Args:
        tab: the page that asks, which does not meet itself.
    """
    now = timezone.now()
    rows = (
        Roi.objects.visible_to(user)
        .filter(canvas=canvas, updated_at__gte=since - timedelta(seconds=OVERLAP_S))
        .order_by("-updated_at", "id")
        .values_list("pk", "version", "deleted_at")[: MOST_CHANGES + 1]
    )
    changed = tuple(RoiChanged(pk, version, gone is not None) for pk, version, gone in rows)
    has_more = len(changed) > MOST_CHANGES
    return CanvasNow(now, changed[:MOST_CHANGES], has_more, _people(user, canvas, now, tab))


def _people(user: User, canvas: Canvas, now: datetime, tab: uuid.UUID | None) -> tuple[Person, ...]:
    """Those who share a lab with the person: guests of a shared case are told of nobody else."""
    known = Membership.objects.visible_to(user).values("user_id")
    rows = (
        CanvasPresence.objects.not_hidden_from(user)
        .filter(canvas=canvas, seen_at__gte=now - timedelta(seconds=AWAY_S), user__in=known)
        .select_related("user")
        .order_by("user__full_name", "user_id", "-seen_at")
    )
    if tab is not None:
        rows = rows.exclude(user=user, tab=tab)
    found: dict[uuid.UUID, Person] = {}
    for row in rows:
        if row.user_id not in found:
            found[row.user_id] = person_of(row.user, view=row.view, roi=row.roi_id)
    return tuple(found.values())


def person_of(user: User, *, view: Sequence[float] | None, roi: uuid.UUID | None) -> Person:
    """As the others see them."""
    name = str(user)
    return Person(
        id=user.pk,
        name=name,
        initials=initials_of(name),
        hue=user.pk.int % HUES,
        view=tuple(view) if view else None,
        roi=roi,
    )


def initials_of(name: str) -> str:
    """``PW`` of ``Dr Paula Weiss``: of the first and last word, without titles."""
    words = [
        word
        for word in name.partition("@")[0].partition(",")[0].replace(".", " ").split()
        if word.lower() not in {"dr", "prof", "med"}
    ]
    if not words:
        return "?"
    return (words[0][0] + (words[-1][0] if len(words) > 1 else "")).upper()
