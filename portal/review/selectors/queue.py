"""Review queue: ROIs of a user's labs by review state."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from portal.annotations.models import ReviewState, Roi, RoiQuerySet
from portal.labs.models import User
from portal.review.models import RoiComment


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Filter of the review queue; None or empty matches everything.

    Attributes:
        person_id: Author of the ROIs.
        case: Part of an accession number, or of the diagnosis.
        since, until: Days (UTC) of the last change, both included.
    """

    state: str = ReviewState.SUBMITTED
    lab_id: uuid.UUID | None = None
    canvas_id: uuid.UUID | None = None
    label_id: uuid.UUID | None = None
    person_id: uuid.UUID | None = None
    case: str = ""
    since: date | None = None
    until: date | None = None

    def query(self) -> Q:
        """Conditions as one ``Q``."""
        exact = {
            "review_state": self.state or None,
            "lab_id": self.lab_id,
            "canvas_id": self.canvas_id,
            "label_id": self.label_id,
            "created_by_id": self.person_id,
            "updated_at__date__gte": self.since,
            "updated_at__date__lte": self.until,
        }
        query = Q(**{name: value for name, value in exact.items() if value is not None})
        if self.case:
            query &= Q(canvas__case__accession__icontains=self.case) | Q(
                canvas__case__diagnosis__icontains=self.case
            )
        return query


def review_queue(user: User, filters: QueueFilter) -> RoiQuerySet:
    """Live ROIs of the user's own labs with ``comment_count``, longest unchanged first."""
    comments = (
        RoiComment.objects.filter(roi=OuterRef("pk"))
        .order_by()
        .values("roi")
        .annotate(n=Count("pk"))
    )
    return (
        Roi.objects.owned_by(user)
        .live()
        .filter(filters.query())
        .select_related("canvas__case", "canvas__video", "label", "created_by")
        .defer("foreign", "geometry")
        .annotate(
            comment_count=Coalesce(Subquery(comments.values("n"), output_field=IntegerField()), 0)
        )
        .order_by("updated_at", "id")
    )


def queue_people(user: User) -> QuerySet[User]:
    """Authors of ROIs in the user's labs, for the filter."""
    drawn = Roi.objects.owned_by(user).live().order_by().values("created_by").distinct()
    return User.objects.filter(pk__in=drawn).order_by("full_name", "email")
