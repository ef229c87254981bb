"""A slide that two people read blindly."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import Lab, Membership, User
from portal.reader_studies.models import Assignment, Study
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from tests.portal.annotations.support import box


@pytest.fixture
def second(lab: Lab) -> User:
    """Another who may draw."""
    user = User.objects.create_user("second@north.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role="annotator")
    return user


@pytest.fixture
def study(lab: Lab, manager: User, canvas: Canvas, annotator: User, second: User) -> Study:
    """Read by ``annotator`` and ``second``."""
    study = study_create(lab=lab, user=manager, name="Grades")
    plan = ReadingPlan(canvases=[canvas], people=[annotator, second])
    readings_assign(study=study, user=manager, plan=plan)
    return study


def reading_of(study: Study, person: User) -> Assignment:
    """The person's reading of the first image."""
    return study.readings.select_related("study", "canvas").get(person=person)


def draw(canvas: Canvas, user: User, *bounds: float, label: Label | None = None) -> Roi:
    """A rectangle: left, top, right, bottom."""
    return roi_create(canvas=canvas, user=user, geometry=box(*bounds), label=label).roi


def seen(client: Any, canvas: Canvas) -> list[str]:
    """Ids of the regions that a window shows."""
    rows = client.get("/api/v1/rois/", {"canvas": str(canvas.pk)}).json()["results"]
    return [row["id"] for row in rows]
