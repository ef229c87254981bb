"""Reads of slides and videos. Each begins from what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import QuerySet

from portal.archive.models import CaseItem, Slide, Video
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.labs.models import User

_Item = TypeVar("_Item", Slide, Video)


@dataclass(frozen=True, slots=True)
class ItemCard:
    """A slide or video with its newest job, as a case's page shows it."""

    item: CaseItem
    kind: str
    job: Job | None


def slide_list(*, user: User) -> QuerySet[Slide]:
    """The slides and stills this person may see."""
    return Slide.objects.visible_to(user).select_related("case", "canvas", "asset", "lab")


def video_list(*, user: User) -> QuerySet[Video]:
    """The videos this person may see."""
    return Video.objects.visible_to(user).select_related("case", "canvas", "asset", "lab")


def slide_get(*, user: User, slide_id: uuid.UUID) -> Slide:
    """One slide, or ``NotFoundError``."""
    return _get(slide_list(user=user), slide_id, "slide")


def video_get(*, user: User, video_id: uuid.UUID) -> Video:
    """One video, or ``NotFoundError``."""
    return _get(video_list(user=user), video_id, "video")


def item_get(*, user: User, kind: str, item_id: uuid.UUID) -> Slide | Video:
    """A slide or a video by the word for it."""
    if kind == "slide":
        return slide_get(user=user, slide_id=item_id)
    if kind == "video":
        return video_get(user=user, video_id=item_id)
    raise NotFoundError("No such item.")


def item_cards(items: Iterable[CaseItem]) -> list[ItemCard]:
    """Items with their newest jobs: one query for all of a kind. The caller may see the items."""
    items = list(items)
    if not items:
        return []
    kind = str(items[0]._meta.model_name)
    jobs = job_latest_for(target_type=kind, target_ids=[item.pk for item in items])
    return [ItemCard(item, kind, jobs.get(item.pk)) for item in items]


def _get(items: QuerySet[_Item], item_id: uuid.UUID, word: str) -> _Item:
    item = items.filter(pk=item_id).first()
    if item is None:
        raise NotFoundError(f"No such {word}.")
    return item
