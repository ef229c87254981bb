"""Writes: create, assign and unblind studies."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.annotations.models import Label
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import Lab, User
from portal.reader_studies.models import DEFAULT_MIN_IOU, NOTE_MAX, Assignment, BlindUntil, Study
from portal.reader_studies.rules import require_assign
from portal.reader_studies.services.assignments import ReadingPlan, work_assign
from portal.reader_studies.services.notifications import study_event_emit

MIN_READERS = 2


def study_create(
    *,
    lab: Lab,
    user: User,
    name: str,
    note: str = "",
    labels: Collection[Label] = (),
    min_iou: float = DEFAULT_MIN_IOU,
    blind_until: str = BlindUntil.IMAGE,
) -> Study:
    """Create a study; emits ``study.created``.

    Args:
        labels: Labels to compare; none: all.
    Raises:
        ForbiddenError: not a manager.
        ConflictError: the name is taken.
        InvalidInputError: no name, a label of another lab, an overlap outside of 0.05 to 0.95.
    """
    require_assign(user, lab.pk)
    name, note = name.strip(), note.strip()
    if not 1 <= len(name) <= 120:
        raise InvalidInputError(f"name: 1 to 120 characters, not {len(name)}.")
    if len(note) > NOTE_MAX:
        raise InvalidInputError(f"note: at most {NOTE_MAX} characters, not {len(note)}.")
    if not 0.05 <= min_iou <= 0.95:
        raise InvalidInputError(f"min_iou: from 0.05 to 0.95, not {min_iou:g}.")
    if any(label.lab_id != lab.pk for label in labels):
        raise InvalidInputError("labels: one of them belongs to another lab.")
    try:
        with transaction.atomic():
            study: Study = Study.objects.create(
                lab=lab,
                name=name,
                note=note,
                min_iou=min_iou,
                blind_until=blind_until,
                created_by=user,
            )
            study.labels.set(labels)
            study_event_emit("created", study, blind_until=blind_until)
    except IntegrityError as error:
        raise ConflictError(f"There is already a study “{name}”.", code="name-taken") from error
    return study


def readings_assign(*, study: Study, user: User, plan: ReadingPlan) -> list[Assignment]:
    """Assign images of a study to at least two readers each; nobody gets an image of the study
    twice.

    Raises:
        ConflictError: the study was unblinded. As ``work_assign``.
        InvalidInputError: an image would have one reader only.

    """
    require_assign(user, study.lab_id)
    is_blind = study.blind_until != BlindUntil.NEVER_BLIND
    if is_blind and study.unblinded_at is not None:
        raise ConflictError("This study was unblinded. Start another one.", code="unblinded")
    readers: defaultdict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    readings = study.readings.filter(canvas__in=plan.canvases)
    for canvas_id, person_id in readings.order_by().values_list("canvas_id", "person_id"):
        readers[canvas_id].add(person_id)
    new = {person.pk for person in plan.people}
    for canvas in plan.canvases:
        if len(new | readers[canvas.pk]) < MIN_READERS:
            raise InvalidInputError(f"{canvas.name}: choose at least two readers.")
    return work_assign(lab=study.lab, user=user, plan=plan, study=study, is_blind=is_blind)


def study_unblind(*, study: Study, user: User) -> Study:
    """Lift the blinding of the whole study; emits ``study.unblinded``, for the audit log.

    Unsubmitted readings continue, but are no longer blind.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: nothing is blind.
    """
    require_assign(user, study.lab_id)
    with transaction.atomic():
        rows = Assignment.all_objects.filter(study=study, is_blind=True)
        waiting = rows.filter(submitted_at=None).count()
        if not rows.update(is_blind=False):
            raise ConflictError("This study is not blinded.", code="not-blind")
        study.unblinded_at, study.unblinded_by = timezone.now(), user
        study.save(update_fields=["unblinded_at", "unblinded_by", "updated_at"])
        study_event_emit("unblinded", study, unfinished=waiting)
    return study
