"""Deletion of a mosaic: its work is stopped, its rows go, then its files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from portal.annotations.models import Roi
from portal.archive import storage
from portal.archive.models import Canvas
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import ENDED, Job
from portal.jobs.services import job_cancel
from portal.labs.models import User
from portal.mosaics.build_cache import build_cache_drop, build_cache_folder
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.rules import require_build


def mosaic_delete(*, mosaic: Mosaic, user: User) -> None:
    """Delete a mosaic with its components, frames, follow-ups and files. The video stays.

    What is being built or looked for on it is cancelled first. ROIs that were deleted before go
    with it for good, and so do their vectors. Emits ``mosaic.deleted``.

    Raises:
        ForbiddenError: not an annotator; or another person's job is at work on it, which only a
            manager may cancel.
        ConflictError: ROIs are drawn on it; the message counts them.
    """
    require_build(user, mosaic.lab_id)
    with transaction.atomic():
        _cancel_jobs([mosaic.pk], user)
        # An ROI being drawn meanwhile waits for this lock, and then finds its canvas gone.
        canvases = list(Canvas.objects.select_for_update().filter(mosaic_component__mosaic=mosaic))
        followups = list(
            Followup.objects.filter(Q(roi__canvas__in=canvases) | Q(target__in=canvases))
        )
        _cancel_jobs([followup.pk for followup in followups], user)
        _require_no_rois(mosaic, canvases)
        event_emit(
            "mosaic.deleted",
            lab_id=mosaic.lab_id,
            payload={
                "mosaic_id": str(mosaic.pk),
                "video_id": str(mosaic.video_id),
                "case_id": str(mosaic.case_id),
                "name": mosaic.name,
                "deleted_by": str(user.pk),
            },
        )
        folders = [storage.derived_folder(owner.pk) for owner in (mosaic, *followups)]
        folders += [storage.cache_folder(canvas.pk) for canvas in canvases]
        if not _is_work_shared(mosaic):
            transaction.on_commit(partial(build_cache_drop, mosaic))
        mosaic.delete()
        for canvas in canvases:
            canvas.delete()
        transaction.on_commit(partial(_drop, folders))


def _cancel_jobs(targets: Sequence[uuid.UUID], user: User) -> None:
    """Stop what is at work on these."""
    for job in Job.objects.filter(target_id__in=targets).exclude(state__in=ENDED):
        try:
            job_cancel(job=job, user=user)
        except ConflictError:
            continue  # it ended just now


def _is_work_shared(mosaic: Mosaic) -> bool:
    """Whether another one of the video goes on from the same stages."""
    others = Mosaic.objects.filter(video=mosaic.video_id).exclude(pk=mosaic.pk)
    return any(build_cache_folder(other) == build_cache_folder(mosaic) for other in others)


def _require_no_rois(mosaic: Mosaic, canvases: Iterable[Canvas]) -> None:
    count = Roi.objects.live().filter(canvas__in=canvases).count()
    if count:
        regions = "1 region. Delete it" if count == 1 else f"{count} regions. Delete them"
        raise ConflictError(
            f"{mosaic.name} cannot be deleted: it carries {regions} first.",
            code="item-in-use",
            details={"holds": {"ROIs": count}},
        )


def _drop(folders: Iterable[Path]) -> None:
    for folder in folders:
        storage.folder_drop(folder)
