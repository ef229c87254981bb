"""What narrows a search, as queries: of canvases by case and slide, and of ROIs themselves."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Any

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Canvas, Slide
from portal.archive.selectors import case_tagged_q
from portal.core.text import name_clean
from portal.retrieval.selectors.days import midnight, midnight_after


class CaseScope(StrEnum):
    """Where a search looks, seen from the case of the ROI that is searched with."""

    ANY = ""
    ONLY = "only"
    OTHERS = "others"


FILTER_TITLES = {
    "organ": "Organ",
    "diagnosis": "Diagnosis",
    "stain": "Stain",
    "tag": "Tag",
    "scanner": "Scanner",
    "kind": "Image",
    "review_state": "Review",
    "since": "Drawn from",
    "until": "Drawn until",
}
"""Filters that are a text or a day, and what pages and reports call them."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Only regions that match all of it; what is empty lets everything through.

    Attributes:
        organ, diagnosis, tag: of the case, the whole word, upper and lower case alike.
        stain: of the slide, in the same way. scanner: who made its file. kind: of canvas.
        label_id, review_state: of the ROI. since, until: days it was drawn on, both included.
        case: the ROI's own case only (then its patient is not left out), or all others.
    """

    organ: str = ""
    diagnosis: str = ""
    tag: str = ""
    stain: str = ""
    scanner: str = ""
    kind: str = ""
    label_id: uuid.UUID | None = None
    review_state: str = ""
    since: date | None = None
    until: date | None = None
    case: CaseScope = CaseScope.ANY

    def __post_init__(self) -> None:
        """Words are spelled as the database spells them."""
        for word in ("organ", "diagnosis", "tag", "stain", "scanner"):
            object.__setattr__(self, word, name_clean(getattr(self, word)))

    def __bool__(self) -> bool:
        """True if it narrows anything."""
        return any(getattr(self, field.name) for field in fields(self))


def canvases_matching(
    lab_id: uuid.UUID, filters: Filters, *, case_id: uuid.UUID | None
) -> QuerySet[Canvas] | None:
    """Canvases of a lab that match; None if nothing is asked of them.

    Args:
        case_id: of what is searched with; None if it has none.
    """
    asked = _case_conditions(filters, case_id)
    if filters.kind:
        asked &= Q(kind=filters.kind)
    of_slide = {"vendor__iexact": filters.scanner, "stain__iexact": filters.stain}
    if said := {name: value for name, value in of_slide.items() if value}:
        slides = Slide.objects.filter(lab_id=lab_id, **said)
        asked &= Q(pk__in=slides.order_by().values("canvas_id"))
    return Canvas.objects.filter(asked, lab_id=lab_id) if asked else None


def rois_matching(lab_id: uuid.UUID, filters: Filters) -> QuerySet[Roi] | None:
    """ROIs of a lab that match, whatever they lie on; None if nothing is asked of them."""
    asked = _drawn_within(filters)
    if filters.label_id:
        asked &= Q(label_id=filters.label_id)
    if filters.review_state:
        asked &= Q(review_state=filters.review_state)
    return Roi.objects.filter(asked, lab_id=lab_id) if asked else None


def _drawn_within(filters: Filters) -> Q:
    """The days of ``since`` and ``until`` as a condition on an ROI."""
    found = Q()
    if filters.since:
        found &= Q(created_at__gte=midnight(filters.since))
    if filters.until and (end := midnight_after(filters.until)):
        found &= Q(created_at__lt=end)
    return found


def _case_conditions(filters: Filters, case_id: uuid.UUID | None) -> Q:
    asked: dict[str, Any] = {
        f"case__{name}__iexact": value
        for name in ("organ", "diagnosis")
        if (value := getattr(filters, name))
    }
    found = Q(**asked)
    if filters.tag:
        found &= case_tagged_q(filters.tag, prefix="case__")
    if filters.case is CaseScope.ONLY:
        found &= Q(case_id=case_id)
    elif filters.case is CaseScope.OTHERS:
        found &= ~Q(case_id=case_id)
    return found
