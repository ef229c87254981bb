"""Search filters as queries: canvases by case and slide attributes, and ROIs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Any

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Canvas, Slide
from portal.archive.selectors.cases import case_tagged_q
from portal.core.text import name_clean
from portal.search.selectors.date_ranges import midnight, midnight_after


class CaseScope(StrEnum):
    """Cases to search, relative to the case of the query."""

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
"""Text and date filters, and their titles on pages and reports."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that regions have to meet; empty fields match all.

    Attributes:
        organ, diagnosis, tag: Of the case; whole value, case-insensitive.
        stain: Of the slide; whole value, case-insensitive.
        scanner: Vendor of the slide's scanner.
        kind: Kind of canvas.
        label_id, review_state: Of the ROI.
        since, until: First and last day on which it was drawn.
        case: Only the query's case (then its patient is not left out), or only others.
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
        """Normalise text as the database does."""
        for word in ("organ", "diagnosis", "tag", "stain", "scanner"):
            object.__setattr__(self, word, name_clean(getattr(self, word)))

    def __bool__(self) -> bool:
        """True if any filter is set."""
        return any(getattr(self, field.name) for field in fields(self))


def canvases_matching(
    lab_id: uuid.UUID, filters: Filters, *, case_id: uuid.UUID | None
) -> QuerySet[Canvas] | None:
    """Canvases of a lab that match the filters; None if no filter applies to canvases.

    Args:
        case_id: Case of the query; None if it has none.
    """
    conditions = _case_conditions(filters, case_id)
    if filters.kind:
        conditions &= Q(kind=filters.kind)
    of_slide = {"vendor__iexact": filters.scanner, "stain__iexact": filters.stain}
    if slide_fields := {name: value for name, value in of_slide.items() if value}:
        slides = Slide.objects.filter(lab_id=lab_id, **slide_fields)
        conditions &= Q(pk__in=slides.order_by().values("canvas_id"))
    return Canvas.objects.filter(conditions, lab_id=lab_id) if conditions else None


def rois_matching(lab_id: uuid.UUID, filters: Filters) -> QuerySet[Roi] | None:
    """ROIs of a lab that match, on any canvas; None if no filter applies to ROIs."""
    conditions = _drawn_within(filters)
    if filters.label_id:
        conditions &= Q(label_id=filters.label_id)
    if filters.review_state:
        conditions &= Q(review_state=filters.review_state)
    return Roi.objects.filter(conditions, lab_id=lab_id) if conditions else None


def _drawn_within(filters: Filters) -> Q:
    """Condition on an ROI for ``since`` and ``until``."""
    condition = Q()
    if filters.since:
        condition &= Q(created_at__gte=midnight(filters.since))
    if filters.until and (end := midnight_after(filters.until)):
        condition &= Q(created_at__lt=end)
    return condition


def _case_conditions(filters: Filters, case_id: uuid.UUID | None) -> Q:
    conditions: dict[str, Any] = {
        f"case__{name}__iexact": value
        for name in ("organ", "diagnosis")
        if (value := getattr(filters, name))
    }
    condition = Q(**conditions)
    if filters.tag:
        condition &= case_tagged_q(filters.tag, prefix="case__")
    if filters.case is CaseScope.ONLY:
        condition &= Q(case_id=case_id)
    elif filters.case is CaseScope.OTHERS:
        condition &= ~Q(case_id=case_id)
    return condition
