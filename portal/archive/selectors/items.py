"""Reads of slides and videos, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import QuerySet

from ml.natural_order import natural_key
from portal.archive.models import CaseItem, Slide, Video
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.labs.models import User

_Item = TypeVar("_Item", Slide, Video)
_WEBM = ("matroska", "webm")  # FFmpeg's name of both


@dataclass(frozen=True, slots=True)
class ItemCard:
    """A slide or video with its newest job, as a case's page shows it."""

    item: CaseItem
    kind: str
    job: Job | None


def slide_list(*, user: User, with_shared: bool = False) -> QuerySet[Slide]:
    """The slides and stills of the person's labs; optionally also of cases shared with them."""
    slides = Slide.objects.visible_to(user) if with_shared else Slide.objects.owned_by(user)
    return slides.select_related("case", "canvas", "asset", "lab")


def video_list(*, user: User, with_shared: bool = False) -> QuerySet[Video]:
    """The videos of the person's labs; optionally also of cases shared with them."""
    videos = Video.objects.visible_to(user) if with_shared else Video.objects.owned_by(user)
    return videos.select_related("case", "canvas", "asset", "lab")


def slide_get(*, user: User, slide_id: uuid.UUID) -> Slide:
    """A slide; ``NotFoundError`` if it is not visible."""
    return _get(slide_list(user=user, with_shared=True), slide_id, "slide")


def video_get(*, user: User, video_id: uuid.UUID) -> Video:
    """A video; ``NotFoundError`` if it is not visible."""
    return _get(video_list(user=user, with_shared=True), video_id, "video")


def item_get(*, user: User, kind: str, item_id: uuid.UUID) -> Slide | Video:
    """A slide or a video by the word for it."""
    if kind == "slide":
        return slide_get(user=user, slide_id=item_id)
    if kind == "video":
        return video_get(user=user, video_id=item_id)
    raise NotFoundError("No such item.")


def item_cards(items: Iterable[CaseItem], *, user: User) -> list[ItemCard]:
    """Items in natural order of names, with their newest jobs where the person may see jobs.

    One query for all of a kind. The caller may see the items.
    """
    items = sorted(items, key=lambda item: (natural_key(item.name), item.pk))
    if not items:
        return []
    kind = str(items[0]._meta.model_name)
    jobs = job_latest_for(target_type=kind, target_ids=[item.pk for item in items], user=user)
    return [ItemCard(item, kind, jobs.get(item.pk)) for item in items]


def _get(items: QuerySet[_Item], item_id: uuid.UUID, word: str) -> _Item:
    item = items.filter(pk=item_id).first()
    if item is None:
        raise NotFoundError(f"No such {word}.")
    return item


def video_media_type(video: Video) -> str:
    """Media type for playback: MP4 for a rendition, the container's type for an original."""
    is_webm = any(word in video.container.lower() for word in _WEBM)
    return "video/webm" if is_webm and storage.is_original(video.media_path) else "video/mp4"
