"""Reads of follow-ups: possible targets, and hits."""

from __future__ import annotations

import uuid
from pathlib import Path

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError, UnavailableError
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.labs.models import User
from portal.mosaics.models import Followup

_KINDS = (CanvasKind.VIDEO, CanvasKind.MOSAIC)
_SEARCHED = Q(kind__in=_KINDS) | Q(kind=CanvasKind.STILL, modality=Modality.ENDOSCOPY)


def followup_list(user: User) -> QuerySet[Followup]:
    """The follow-ups this person may see, newest first."""
    return Followup.objects.visible_to(user).select_related(
        "roi__canvas__case", "roi__canvas__video", "target__case", "target__video"
    )


def followup_get(user: User, followup_id: uuid.UUID) -> Followup:
    """A follow-up; ``NotFoundError`` also for another lab's."""
    followup = followup_list(user).filter(pk=followup_id).first()
    if followup is None:
        raise NotFoundError("There is no such follow-up.")
    return followup


def followup_job(followup: Followup) -> Job | None:
    """Newest job of a follow-up."""
    return job_latest_for(target_type="followup", target_ids=[followup.pk]).get(followup.pk)


def has_followups(canvas: Canvas) -> bool:
    """Return whether a canvas can be followed up: a video, a mosaic or an endoscopy still."""
    is_still = canvas.kind == CanvasKind.STILL and canvas.modality == Modality.ENDOSCOPY
    return is_still or canvas.kind in _KINDS


def followup_targets(roi: Roi) -> QuerySet[Canvas]:
    """Videos, mosaics and endoscopic stills of the same patient, the newest examination first.

    The ROI's own canvas is left out. The same patient: the same pseudonym in the same lab, or the
    same case.
    """
    case = roi.canvas.case
    same = Q(case_id=case.pk)
    if case.patient_key:
        same |= Q(case__patient_key=case.patient_key)
    return (
        Canvas.objects.filter(same, _SEARCHED, lab_id=roi.lab_id)
        .exclude(pk=roi.canvas_id)
        .select_related("case", "video")
        .order_by("-case__created_at", "created_at", "id")
    )


def hit_picture(followup: Followup, rank: int) -> bytes:
    """The place and the frame with the verified matches, as JPEG; ``rank`` counts from 1."""
    hits = followup.result
    if not 1 <= rank <= len(hits):
        raise NotFoundError(f"This follow-up has {len(hits)} results.")
    path = storage.derived_folder(followup.pk) / Path(hits[rank - 1]["picture"]).name
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnavailableError("The picture cannot be read from storage.") from error
