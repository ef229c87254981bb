"""Studies, and the progress of their readers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.labs.models import Role, User
from portal.labs.selectors import labs_with_role
from portal.reader_studies.models import Assignment, Study


@dataclass(frozen=True, slots=True)
class ImageReadings:
    """An image of a study, with its readings in the order of ``readers`` (None: not assigned).

    Attributes:
        is_blind: Its readers do not see each other's regions.
        is_comparable: At least two are submitted, and none is blind.
    """

    canvas: Canvas
    readings: tuple[Assignment | None, ...]
    is_blind: bool
    is_comparable: bool


def study_list(user: User) -> QuerySet[Study]:
    """Studies of the labs in which the user reviews, and those the user reads in.

    With ``reading_count``, ``submitted_count``, ``image_count`` and ``blind_count``.
    """
    reviewed = labs_with_role(user, at_least=Role.REVIEWER)
    assigned = (
        Assignment.objects.filter(person=user, study__isnull=False).order_by().values("study")
    )
    return (
        Study.objects.owned_by(user)
        .filter(Q(lab__in=reviewed) | Q(pk__in=assigned))
        .select_related("lab", "created_by", "unblinded_by")
        .annotate(
            reading_count=Count("readings"),
            submitted_count=Count("readings", filter=Q(readings__submitted_at__isnull=False)),
            image_count=Count("readings__canvas", distinct=True),
            blind_count=Count("readings", filter=Q(readings__is_blind=True)),
        )
        .order_by("-created_at", "id")
    )


def study_get(user: User, study_id: uuid.UUID) -> Study:
    """Study in the user's list; ``NotFoundError`` otherwise."""
    study: Study | None = study_list(user).filter(pk=study_id).first()
    if study is None:
        raise NotFoundError("There is no such study.")
    return study


def progress_of(study: Study) -> tuple[list[User], list[ImageReadings]]:
    """Readers by name, and images in the order they were added. One query."""
    readings = list(
        Assignment.objects.filter(study=study)
        .select_related("canvas__case", "person")
        .defer("canvas__levels")
        .order_by("created_at", "canvas__created_at", "id")
    )
    readers = sorted({reading.person for reading in readings}, key=lambda row: str(row).lower())
    of_canvas: dict[uuid.UUID, list[Assignment]] = {}
    for row in readings:
        of_canvas.setdefault(row.canvas_id, []).append(row)
    return readers, [_progress(rows[0].canvas, rows, readers) for rows in of_canvas.values()]


def _progress(canvas: Canvas, rows: Iterable[Assignment], readers: Iterable[User]) -> ImageReadings:
    by_reader = {row.person_id: row for row in rows}
    is_blind = any(reading.is_blind for reading in by_reader.values())
    handed_in = sum(reading.submitted_at is not None for reading in by_reader.values())
    readings = tuple(by_reader.get(reader.pk) for reader in readers)
    return ImageReadings(canvas, readings, is_blind, not is_blind and handed_in > 1)
