"""Reads of canvases. Each begins from what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from portal.archive.models import Canvas, Video
from portal.core.errors import NotFoundError
from portal.labs.models import User


def canvas_list(*, user: User) -> QuerySet[Canvas]:
    """The canvases this person may see, with their cases and their slides or videos."""
    return Canvas.objects.visible_to(user).select_related("case", "slide", "video")


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


def canvases_require(*, user: User, canvas_ids: Collection[uuid.UUID]) -> None:
    """``NotFoundError`` unless this person may see each of them."""
    wanted = set(canvas_ids)
    if wanted and Canvas.objects.visible_to(user).filter(pk__in=wanted).count() != len(wanted):
        raise NotFoundError("No such canvas.")


def canvases_beside(*, user: User, canvas: Canvas, text: str = "") -> QuerySet[Canvas]:
    """What this person may put beside a canvas: of its case, then of their labs, newest first.

    Args:
        text: only those whose name or stain, or whose case's accession, organ or diagnosis holds
            it.
    """
    of_labs = Canvas.objects.owned_by(user).values("pk")
    is_beside = ExpressionWrapper(Q(case=canvas.case_id), output_field=BooleanField())
    found = (
        Canvas.objects.visible_to(user)
        .filter(Q(case=canvas.case_id) | Q(pk__in=of_labs))
        .select_related("case")
        .annotate(is_beside=is_beside)
        .order_by("-is_beside", "-created_at", "id")
    )
    if text:
        fields = ("name", "slide__stain", "case__accession", "case__organ", "case__diagnosis")
        held = Q()
        for field in fields:
            held |= Q(**{f"{field}__icontains": text})
        found = found.filter(held)
    return found
