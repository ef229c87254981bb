"""Writes: assign, submit, reopen and remove work."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from django.db import transaction
from django.utils import timezone

from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError
from portal.labs.models import Lab, User
from portal.reader_studies.events import AssignmentEvent
from portal.reader_studies.models import NOTE_MAX, Assignment, BlindUntil, Study, SubmittedRegion
from portal.reader_studies.rules import require_assign
from portal.reader_studies.selectors.candidates import members_who_draw
from portal.reader_studies.services.notifications import (
    assignment_events_emit,
    study_event_emit,
)

MAX_ASSIGNMENTS = 5_000  # images times people


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Images and users; each image is assigned to each user."""

    canvases: Sequence[Canvas]
    people: Sequence[User]
    due_on: date | None = None
    note: str = field(default="")


def work_assign(
    *,
    lab: Lab,
    user: User,
    plan: ReadingPlan,
    study: Study | None = None,
    is_blind: bool = False,
) -> list[Assignment]:
    """Assign images; a user who has an open assignment of an image does not get a second one, also
    with concurrent calls. Returns the new assignments.

    Emits ``assignment.made``.

    Args:
        study: Study that the images are read for; blindly, if ``is_blind``.
    Raises:
        ForbiddenError: not a manager of the lab.
        InvalidInputError: no images, no users, too many, another lab's image, or a user who may not
            draw in this lab.

    """
    require_assign(user, lab.pk)
    _check(lab, plan)
    note = plan.note.strip()
    with transaction.atomic():
        open_ones = Assignment.objects.filter(lab=lab, study=study, canvas__in=plan.canvases)
        if study is None:
            open_ones = open_ones.filter(submitted_at=None)
        open_pairs = set(open_ones.values_list("canvas_id", "person_id"))
        rows = [
            Assignment(
                lab=lab,
                study=study,
                canvas=canvas,
                person=person,
                due_on=plan.due_on,
                note=note,
                is_blind=is_blind,
                assigned_by=user,
            )
            for canvas in plan.canvases
            for person in plan.people
            if (canvas.pk, person.pk) not in open_pairs
        ]
        Assignment.all_objects.bulk_create(rows, ignore_conflicts=True)
        assignments = Assignment.all_objects.filter(pk__in=[row.pk for row in rows])
        made_ids = set(assignments.order_by().values_list("pk", flat=True))
        rows = [row for row in rows if row.pk in made_ids]
        assignment_events_emit(AssignmentEvent.MADE, rows)
    return rows


def assignment_submit(*, assignment: Assignment, user: User) -> Assignment:
    """Submit an assignment; the regions of a reading are recorded as they are.

    The last reading of a blind image (or study) lifts the blinding. Emits ``assignment.submitted``.

    Raises:
        ForbiddenError: it is assigned to another user.
        ConflictError: it was submitted already.
    """
    if assignment.person_id != user.pk:
        raise ForbiddenError("Only the person that it is assigned to can hand it in.")
    with transaction.atomic():
        now = timezone.now()
        rows = Assignment.objects.filter(pk=assignment.pk, submitted_at=None)
        if not rows.update(submitted_at=now, updated_at=now):
            raise ConflictError("This has already been handed in.", code="submitted")
        assignment.submitted_at = now
        if assignment.study is not None:
            regions = [
                SubmittedRegion(assignment=assignment, revision_id=pk)
                for pk in _revisions(assignment, assignment.study)
            ]
            SubmittedRegion.objects.bulk_create(regions, batch_size=500)
        assignment_events_emit(AssignmentEvent.SUBMITTED, [assignment])
        if assignment.is_blind and assignment.study is not None:
            lift_where_complete(assignment.study, assignment.canvas_id)
            assignment.refresh_from_db(fields=["is_blind"])
    return assignment


def assignment_reopen(*, assignment: Assignment, user: User) -> Assignment:
    """Reopen an assignment and delete its recorded regions. Emits ``assignment.reopened``.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: it is not submitted, or the reader has seen the others' regions since.
    """
    require_assign(user, assignment.lab_id)
    study = assignment.study
    if assignment.submitted_at is None:
        raise ConflictError("This has not been handed in.", code="not-submitted")
    if (
        study is not None
        and study.blind_until != BlindUntil.NEVER_BLIND
        and not assignment.is_blind
    ):
        raise ConflictError(
            "The blinding was lifted, so what is drawn from now on would not be a blind reading.",
            code="unblinded",
        )
    with transaction.atomic():
        assignment.regions.all().delete()
        assignment.submitted_at = None
        assignment.save(update_fields=["submitted_at", "updated_at"])
        assignment_events_emit(AssignmentEvent.REOPENED, [assignment])
    return assignment


def assignment_update(
    *, assignment: Assignment, user: User, due_on: date | None, note: str
) -> Assignment:
    """Change due date and note. Emits ``assignment.changed``. ``ForbiddenError``: not a manager."""
    require_assign(user, assignment.lab_id)
    _check_note(note)
    with transaction.atomic():
        assignment.due_on, assignment.note = due_on, note.strip()
        assignment.save(update_fields=["due_on", "note", "updated_at"])
        assignment_events_emit(AssignmentEvent.CHANGED, [assignment])
    return assignment


def assignment_remove(*, assignment: Assignment, user: User) -> None:
    """Remove an assignment. Drawn regions stay and become visible. Emits ``assignment.removed``.

    If it was the last open reading, the others' blinding is lifted.

    Raises:
        ForbiddenError: not a manager.
    """
    require_assign(user, assignment.lab_id)
    with transaction.atomic():
        assignment_events_emit(AssignmentEvent.REMOVED, [assignment])
        study, canvas_id, was_blind = assignment.study, assignment.canvas_id, assignment.is_blind
        assignment.delete()
        if was_blind and study is not None:
            lift_where_complete(study, canvas_id)


def lift_where_complete(study: Study, canvas_id: uuid.UUID) -> None:
    """Lift the blinding of an image or study once all is submitted; emits ``study.completed``."""
    rows = Assignment.all_objects.select_for_update().filter(study=study, is_blind=True)
    if study.blind_until == BlindUntil.IMAGE:
        rows = rows.filter(canvas=canvas_id)
    readings = list(rows.order_by("pk"))
    if readings and all(reading.submitted_at for reading in readings):
        Assignment.all_objects.filter(pk__in=[reading.pk for reading in readings]).update(
            is_blind=False
        )
        study_event_emit("completed", study, readings=len(readings))


def _revisions(assignment: Assignment, study: Study) -> list[uuid.UUID]:
    """Latest revisions of the reader's regions with the study's labels since the assignment."""
    rois = Roi.objects.live().filter(
        canvas=assignment.canvas_id,
        created_by=assignment.person_id,
        created_at__gte=assignment.created_at,
    )
    labels = list(study.labels.values_list("pk", flat=True))
    if labels:
        rois = rois.filter(label__in=labels)
    versions = dict(rois.order_by().values_list("pk", "version"))
    rows = RoiRevision.objects.filter(roi__in=rois.order_by().values("pk")).order_by()
    keys = rows.values_list("pk", "roi_id", "version")
    return [pk for pk, roi_id, version in keys if versions.get(roi_id) == version]


def _check(lab: Lab, plan: ReadingPlan) -> None:
    if not plan.canvases or not plan.people:
        raise InvalidInputError("Choose at least one image and one person.")
    if (count := len(plan.canvases) * len(plan.people)) > MAX_ASSIGNMENTS:
        raise InvalidInputError(f"At most {MAX_ASSIGNMENTS:,} at once, not {count:,}.")
    if any(canvas.lab_id != lab.pk for canvas in plan.canvases):
        raise InvalidInputError("canvases: an image belongs to another lab.")
    able = members_who_draw(lab).filter(user__is_active=True)
    able_ids = set(able.values_list("user_id", flat=True))
    for person in plan.people:
        if person.pk not in able_ids:
            raise InvalidInputError(f"{person} may not draw in {lab.name}.", code="no-annotator")
    _check_note(plan.note)


def _check_note(note: str) -> None:
    if len(note.strip()) > NOTE_MAX:
        raise InvalidInputError(f"note: at most {NOTE_MAX} characters, not {len(note.strip())}.")
