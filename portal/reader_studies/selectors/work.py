"""Assignments by user, and their progress."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Count,
    F,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from portal.annotations.models import ReviewState, Roi, RoiQuerySet
from portal.archive.models import Canvas
from portal.archive.models.shares import today
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role
from portal.reader_studies.models import Assignment
from portal.reader_studies.selectors.candidates import members_who_draw
from portal.review.models import RoiComment


@dataclass(frozen=True, slots=True)
class WorkFilter:
    """Filter of assignments; None matches everything.

    Attributes:
        is_done: Submitted or not.
    """

    person_id: uuid.UUID | None = None
    lab_id: uuid.UUID | None = None
    study_id: uuid.UUID | None = None
    canvas_id: uuid.UUID | None = None
    is_done: bool | None = None

    def query(self) -> Q:
        """Conditions as one ``Q``."""
        exact = {
            "person_id": self.person_id,
            "lab_id": self.lab_id,
            "study_id": self.study_id,
            "canvas_id": self.canvas_id,
            "submitted_at__isnull": None if self.is_done is None else not self.is_done,
        }
        return Q(**{name: value for name, value in exact.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Load:
    """Workload of a user.

    Attributes:
        open, late, done: Number of assignments; ``late`` ones are open and past their due date.
        due_on: The next due date.
    """

    person: User
    open: int
    late: int
    done: int
    due_on: date | None


def work_list(user: User, filters: WorkFilter = WorkFilter()) -> QuerySet[Assignment]:
    """Assignments of the user, and all of the labs they manage; open ones first, by due date.

    Each with ``region_count`` (regions that its reader drew on the image since, as far as ``user``
    may see them) and ``is_late``.
    """
    managed = labs_with_role(user, at_least=Role.MANAGER)
    drawn = Roi.objects.owned_by(user).live().order_by()
    drawn = drawn.filter(
        canvas=OuterRef("canvas_id"),
        created_by=OuterRef("person_id"),
        created_at__gte=OuterRef("created_at"),
    )
    counted = drawn.values("canvas").annotate(n=Count("pk")).values("n")
    late = When(submitted_at=None, due_on__lt=today(), then=Value(True))
    return (
        Assignment.objects.owned_by(user)
        .filter(Q(person=user) | Q(lab__in=managed))
        .filter(filters.query())
        .select_related("canvas__case", "person", "study", "lab", "assigned_by")
        .defer("canvas__levels")
        .annotate(
            region_count=Coalesce(Subquery(counted, output_field=IntegerField()), 0),
            is_late=Case(late, default=Value(False), output_field=BooleanField()),
        )
        .order_by(F("submitted_at").desc(nulls_first=True), *_DUE_FIRST)
    )


_DUE_FIRST = (F("due_on").asc(nulls_last=True), "created_at", "id")


def assignment_get(user: User, assignment_id: uuid.UUID) -> Assignment:
    """Assignment in the user's list; ``NotFoundError`` otherwise."""
    assignment: Assignment | None = work_list(user).filter(pk=assignment_id).first()
    if assignment is None:
        raise NotFoundError("There is no such assignment.")
    return assignment


def work_next(user: User, *, after: Assignment | None = None) -> Assignment | None:
    """The user's most urgent open assignment; with ``after``, another one than that."""
    rows = Assignment.objects.owned_by(user).filter(person=user, submitted_at=None)
    if after is not None:
        rows = rows.exclude(pk=after.pk)
    assignment: Assignment | None = rows.order_by(*_DUE_FIRST).first()
    return assignment


def work_on_canvas(user: User, canvas: Canvas) -> Assignment | None:
    """The user's assignment on an image, if any; open ones first."""
    rows = Assignment.objects.owned_by(user).filter(person=user, canvas=canvas)
    order = F("submitted_at").desc(nulls_first=True)
    assignment: Assignment | None = rows.select_related("study", "canvas").order_by(order).first()
    return assignment


def work_open_count(user: User) -> int:
    """Number of the user's open assignments and rejected regions. One query."""
    rows = Assignment.objects.owned_by(user).filter(person=user, submitted_at=None)
    rejected = _rejected_rois(user).order_by().values("pk")
    return int(rows.order_by().values("pk").union(rejected, all=True).count())


def rejected_regions(user: User, *, lab_id: uuid.UUID | None = None) -> RoiQuerySet:
    """Rejected regions that the user drew, the longest rejected first, each with its ``reason``.

    Args:
        lab_id: Only of this lab; None for all of the user's.
    """
    reasons = RoiComment.objects.filter(roi=OuterRef("pk"), goes_with_verdict=True)
    newest = reasons.order_by("-created_at", "-id").values("text")[:1]
    rows = _rejected_rois(user)
    if lab_id is not None:
        rows = rows.filter(lab=lab_id)
    return (
        rows.select_related("canvas__case", "label")
        .defer("geometry", "foreign", "track", "canvas__levels")
        .annotate(reason=Coalesce(Subquery(newest), Value("")))
        .order_by("updated_at", "id")
    )


def _rejected_rois(user: User) -> RoiQuerySet:
    rows = Roi.objects.owned_by(user).live()
    return rows.filter(created_by=user, review_state=ReviewState.REJECTED)


def load_of(lab: Lab) -> list[Load]:
    """Workload of everybody who may draw in a lab, the most loaded first. Call for its managers."""
    is_open = Q(submitted_at=None)
    rows = (
        Assignment.objects.filter(lab=lab)
        .order_by()
        .values("person")
        .annotate(
            open=Count("pk", filter=is_open),
            late=Count("pk", filter=is_open & Q(due_on__lt=today())),
            done=Count("pk", filter=~is_open),
            next=Min("due_on", filter=is_open),
        )
    )
    rows_by_person: dict[Any, dict[str, Any]] = {row["person"]: dict(row) for row in rows}
    members = members_who_draw(lab).filter(user__is_service=False)
    nothing: dict[str, Any] = {"open": 0, "late": 0, "done": 0, "next": None}
    loads = []
    for member in members.select_related("user").order_by("user__full_name", "user__email"):
        row = rows_by_person.get(member.user_id, nothing)
        loads.append(Load(member.user, row["open"], row["late"], row["done"], row["next"]))
    return sorted(loads, key=lambda load: (-load.late, -load.open))
