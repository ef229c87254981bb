"""Reads of canvases. Each begins from what the person may see."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.archive.models import Canvas, Video
from portal.core.errors import NotFoundError
from portal.labs.models import User


def canvas_list(*, user: User) -> QuerySet[Canvas]:
    """The canvases this person may see, with their cases and, for video, the videos."""
    return Canvas.objects.visible_to(user).select_related("case", "video")


def canvas_get(*, user: User, canvas_id: uuid.UUID) -> Canvas:
    """One canvas, or ``NotFoundError``."""
    canvas = canvas_list(user=user).filter(pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such canvas.")
    return canvas


def canvas_video(canvas: Canvas) -> Video:
    """The video behind a canvas; ``NotFoundError`` where it shows none."""
    video: Video | None = getattr(canvas, "video", None)
    if video is None:
        raise NotFoundError("This canvas shows no video; it has tiles, not frames.")
    return video
