"""Reads of canvases, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from ml.natural_order import natural_key
from portal.archive.models import Canvas, CanvasKind, Video
from portal.archive.selectors.stains import stain_shown
from portal.core.errors import NotFoundError
from portal.core.registry import Registry
from portal.labs.models import User

CanvasCounter = Callable[[User, Collection[uuid.UUID]], Mapping[uuid.UUID, int]]
CANVAS_COUNTERS: Registry[str, CanvasCounter] = Registry()
"""Functions that count, in one query, what a person may see on canvases, by the name of one such
thing."""


def canvas_list(*, user: User) -> QuerySet[Canvas]:
    """The canvases this person may see, with their cases and their slides or videos."""
    return Canvas.objects.visible_to(user).select_related("case", "slide", "video")


def canvas_get(*, user: User, canvas_id: uuid.UUID) -> Canvas:
    """A canvas; ``NotFoundError`` if it is not visible."""
    canvas = canvas_list(user=user).filter(pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such canvas.")
    return canvas


def canvases_of_case(*, user: User, case_id: uuid.UUID) -> QuerySet[Canvas]:
    """The canvases of a case that the person may see, in order of arrival, with their slides."""
    canvases = Canvas.objects.visible_to(user).filter(case=case_id)
    return canvases.select_related("slide").order_by("created_at", "id")


@dataclass(frozen=True, slots=True)
class TrayImage:
    """A canvas as the viewer's tray lists it.

    Attributes:
        description: Stain of a slide where it is known, else the kind of canvas.
        counts: Number of things on it by the name of one.
    """

    canvas: Canvas
    description: str
    counts: Mapping[str, int]


def tray_images(*, user: User, case_id: uuid.UUID) -> list[TrayImage]:
    """The images of a case that the person may see, in the order of the case's page.

    Slides and stills, videos, mosaics, each in natural order of names. The number of queries is
    constant.
    """
    canvases = sorted(canvases_of_case(user=user, case_id=case_id), key=_tray_order)
    ids = [canvas.pk for canvas in canvases]
    counted = [(name, count(user, ids)) for name, count in CANVAS_COUNTERS.items()]
    return [
        TrayImage(
            canvas=canvas,
            description=stain_shown(canvas) or canvas.get_kind_display(),
            counts={name: numbers.get(canvas.pk, 0) for name, numbers in counted},
        )
        for canvas in canvases
    ]


def _tray_order(canvas: Canvas) -> tuple[Any, ...]:
    kinds = (CanvasKind.VIDEO, CanvasKind.MOSAIC)
    section = kinds.index(canvas.kind) + 1 if canvas.kind in kinds else 0
    return section, natural_key(canvas.name), canvas.pk


def canvas_video(canvas: Canvas) -> Video:
    """The video behind a canvas; ``NotFoundError`` where it shows none."""
    video: Video | None = getattr(canvas, "video", None)
    if video is None:
        raise NotFoundError("This canvas shows no video; it has tiles, not frames.")
    return video


def canvases_require(*, user: User, canvas_ids: Collection[uuid.UUID]) -> None:
    """``NotFoundError`` unless this person may see each of them."""
    ids = set(canvas_ids)
    if ids and Canvas.objects.visible_to(user).filter(pk__in=ids).count() != len(ids):
        raise NotFoundError("No such canvas.")


def canvases_to_compare(*, user: User, canvas: Canvas, text: str = "") -> QuerySet[Canvas]:
    """Canvases that the person may compare with this one: of its case first, then of their labs,
    newest first.

    Args:
        text: Only canvases whose name, stain, accession, organ or diagnosis contains it.
    """
    of_labs = Canvas.objects.owned_by(user).values("pk")
    is_same_case = ExpressionWrapper(Q(case=canvas.case_id), output_field=BooleanField())
    canvases = (
        Canvas.objects.visible_to(user)
        .filter(Q(case=canvas.case_id) | Q(pk__in=of_labs))
        .select_related("case")
        .annotate(is_same_case=is_same_case)
        .order_by("-is_same_case", "-created_at", "id")
    )
    if text:
        fields = ("name", "slide__stain", "case__accession", "case__organ", "case__diagnosis")
        text_filter = Q()
        for field in fields:
            text_filter |= Q(**{f"{field}__icontains": text})
        canvases = canvases.filter(text_filter)
    return canvases
