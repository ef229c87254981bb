"""Writes of follow-ups: request, publication of hits, failure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas, ItemState
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User
from portal.mosaics.models import Followup, FollowupHit
from portal.mosaics.rules import require_build
from portal.mosaics.selectors.followups import followup_job, followup_targets, has_followups
from portal.mosaics.services.states import ended_badly, state_again, state_failed

FOLLOWUP_KIND = "followup_find"


@dataclass(frozen=True, slots=True)
class FollowupRequested:
    """A follow-up and its newest job."""

    followup: Followup
    job: Job | None
    is_new: bool


def followup_create(*, roi: Roi, target: Canvas, user: User) -> FollowupRequested:
    """Look for an ROI's place in another endoscopic image of the patient.

    Submits ``followup_find``. Images are videos, mosaics and stills of endoscopy.

    The same outline and target give the same follow-up; one that failed is started again.

    Raises:
        ForbiddenError: not an annotator.
        ConflictError: the ROI was deleted.
        InvalidInputError: the target is of another patient, or the ROI not on endoscopy.
    """
    require_build(user, roi.lab_id)
    if roi.deleted_at is not None:
        raise ConflictError("This region was deleted; restore it first.", code="roi-deleted")
    if roi.shape in MARKS:
        raise InvalidInputError("roi: points and lines have no area to search for.")
    if not has_followups(roi.canvas):
        raise InvalidInputError(
            "roi: expected a region on a video, a mosaic or a still of endoscopy."
        )
    if not followup_targets(roi).filter(pk=target.pk).exists():
        raise InvalidInputError(
            (
                "target: expected another video, mosaic or still of endoscopy of the same patient "
                "(the same pseudonym in the lab)."
            ),
            code="other-patient",
        )
    with transaction.atomic():
        followup, is_new = Followup.objects.get_or_create(
            roi=roi,
            roi_version=roi.version,
            target=target,
            defaults={"lab_id": roi.lab_id, "created_by": user},
        )
        if is_new or state_again(followup):
            return FollowupRequested(followup, _submit(followup, user), is_new=True)
    return FollowupRequested(followup, followup_job(followup), is_new=False)


def followup_ready(
    *,
    followup: Followup,
    folder: Path,
    hits: Sequence[FollowupHit],
    searched: int,
    seconds: float,
) -> None:
    """Publish the hits of a follow-up, and their pictures by one rename. Call in ``effect()``.

    Emits ``followup.finished``.
    """
    followup.result = list(hits)
    followup.searched_count, followup.seconds = searched, round(seconds, 2)
    followup.state, followup.error_code, followup.error_message = ItemState.READY, "", ""
    followup.save()
    storage.folder_publish(folder, storage.derived_folder(followup.pk))
    payload = {"followup_id": str(followup.pk), "roi_id": str(followup.roi_id)}
    result_count = {"found": len(followup.result)}
    event_emit("followup.finished", lab_id=followup.lab_id, payload=payload | result_count)


def followup_job_ended(*, payload: Mapping[str, Any]) -> None:
    """Mark the follow-up of a failed or cancelled job as failed, with the reason."""
    if not ended_badly(payload, kind=FOLLOWUP_KIND):
        return
    followup = Followup.all_objects.filter(pk=payload["target_id"]).first()
    if followup is not None:
        state_failed(followup, payload)


def followups_follow_title(canvas_id: uuid.UUID, before: str, now: str) -> None:
    """Call the jobs that look for a place on a canvas by its present title."""
    followups = Followup.all_objects.filter(target=canvas_id).order_by().values("pk")
    jobs = Job.objects.filter(target_type="followup", target_id__in=followups)
    jobs.update(target_name=f"Place in {now}"[:200])


def _submit(followup: Followup, user: User) -> Job:
    return job_submit(
        kind=FOLLOWUP_KIND,
        args={"followup_id": str(followup.pk)},
        lab=followup.roi.lab,
        user=user,
        target=followup,
        target_name=f"{followup.roi.name or 'Place'} in {followup.target.name}",
    )
