"""Reads of the events of a video."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db.models import Count, QuerySet

from portal.annotations.models import VideoEvent, VideoEventRevision
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.core.text import name_key
from portal.labs.models import User

COMMON_NAMES = (
    "Caecum",
    "Terminal ileum",
    "Withdrawal",
    "Retroflexion",
    "Polyp in view",
    "Tool in view",
    "Biopsy",
    "Resection",
    "Washing",
    "Poor view",
    "Camera outside",
)
"""Suggested to a lab that has few names of its own."""
MAX_SUGGESTIONS = 40


def video_events(
    user: User,
    canvas: Canvas | None = None,
    *,
    name: str = "",
    frame_index: int | None = None,
    deleted: bool = False,
) -> QuerySet[VideoEvent]:
    """Events that the person may see, by their first frame.

    Args:
        canvas: Only events of this canvas.
        name: Only events of this name, in any case.
        frame_index: Only events that this frame is part of.
        deleted: Deleted events instead of live ones.
    """
    rows = VideoEvent.objects.visible_to(user).filter(deleted_at__isnull=not deleted)
    if canvas is not None:
        rows = rows.filter(canvas=canvas)
    if name:
        rows = rows.filter(name_key=name_key(name))
    if frame_index is not None:
        rows = rows.filter(first_index__lte=frame_index, last_index__gte=frame_index)
    return rows.select_related("canvas__video", "created_by")


def video_event_get(user: User, event_id: uuid.UUID) -> VideoEvent:
    """An event, deleted or not; ``NotFoundError`` also for another lab's."""
    rows = VideoEvent.objects.visible_to(user).select_related("canvas__video", "created_by")
    event: VideoEvent | None = rows.filter(pk=event_id).first()
    if event is None:
        raise NotFoundError("There is no such event of a video.")
    return event


def video_event_revisions(event: VideoEvent) -> QuerySet[VideoEventRevision]:
    """Revisions of an event, oldest first, with authors."""
    return event.revisions.select_related("author").order_by("version")


def video_event_names(user: User, lab_id: uuid.UUID) -> Sequence[str]:
    """Names to suggest: those that the lab uses, the most frequent first, then common ones."""
    rows = VideoEvent.objects.visible_to(user).filter(lab_id=lab_id, deleted_at=None)
    used = rows.order_by().values_list("name").annotate(number=Count("pk"))
    names = [name for name, _ in used.order_by("-number", "name")[:MAX_SUGGESTIONS]]
    keys = {name_key(name) for name in names}
    names += [name for name in COMMON_NAMES if name_key(name) not in keys]
    return names[:MAX_SUGGESTIONS]
