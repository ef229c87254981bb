"""Deletion of mosaics: into the trash, out of it, and for good with rows and files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.archive.models import Canvas, TrashEntry, TrashKind, Video
from portal.archive.services.trash import trash_put
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import ENDED_STATES, Job
from portal.jobs.services import job_cancel
from portal.labs.models import User
from portal.mosaics.build_cache import build_cache_drop, build_cache_folder
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.rules import require_build


def mosaic_delete(*, mosaic: Mosaic, user: User) -> TrashEntry:
    """Put a mosaic into the trash, with its components and what is drawn on them. The video stays.

    What is being built or looked for on it is cancelled first. Emits ``mosaic.deleted``.

    Raises:
        ForbiddenError: not an annotator; or another person's job is at work on it, which only a
            manager may cancel.
        NotFoundError: it was deleted in the meantime.
    """
    require_build(user, mosaic.lab_id)
    with transaction.atomic():
        followups = _followups_of(Canvas.objects.filter(mosaic_component__mosaic=mosaic))
        _cancel_jobs([mosaic.pk, *(followup.pk for followup in followups)], user)
        entry = trash_put(item=mosaic, user=user)
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
    return entry


def mosaics_trashed(*, payload: Mapping[str, Any]) -> None:
    """Put the mosaics of a deleted video or case into the trash as well. Handles ``trash.put``.

    Raises:
        ConflictError: one of them is being built.
    """
    mosaics = _hanging_on(Mosaic.objects.all(), payload)
    if payload["kind"] != TrashKind.MOSAIC:
        at_work = Job.objects.filter(target_id__in=mosaics.values("pk")).exclude(
            state__in=ENDED_STATES
        )
        if at_work.exists():
            raise ConflictError(
                "One of its mosaics is still being built. Cancel that job first.", code="item-state"
            )
    mosaic_ids = list(mosaics.values_list("pk", flat=True)) or [uuid.UUID(payload["target_id"])]
    mosaics.update(trash_entry=payload["entry_id"])
    planes = Canvas.objects.filter(mosaic_component__mosaic_id__in=mosaic_ids).values("pk")
    Canvas.objects.filter(pk__in=list(planes)).update(trash_entry=payload["entry_id"])


def mosaics_restored(*, payload: Mapping[str, Any]) -> None:
    """Restore mosaics with the object they were deleted with. Handles ``trash.restored``.

    Raises:
        ConflictError: a mosaic whose video is in the trash.
    """
    mosaics = Mosaic.all_objects.filter(trash_entry=payload["entry_id"])
    for mosaic in mosaics if payload["kind"] == TrashKind.MOSAIC else ():
        if not Video.objects.filter(pk=mosaic.video_id).exists():
            raise ConflictError(
                f"The video of {mosaic.name} is deleted as well: restore the video first.",
                code="video-in-trash",
            )
    mosaics.update(trash_entry=None)


def mosaics_purge(*, payload: Mapping[str, Any]) -> None:
    """Delete mosaics and follow-ups for good, rows and files. Heard from ``trash.purging``.

    Those that went into the trash before, by themselves, are purged with the video they hang on.
    """
    mosaics = list(_hanging_on(Mosaic.all_objects.all(), payload))
    planes = list(Canvas.all_objects.filter(mosaic_component__mosaic__in=mosaics))
    is_purged = Q(trash_entry=payload["entry_id"]) | Q(pk__in=[canvas.pk for canvas in planes])
    followups = _followups_of(Canvas.all_objects.filter(is_purged))
    ids = {str(row.pk) for row in (*mosaics, *followups, *planes)}
    for followup in followups:
        followup.delete()
    for mosaic in mosaics:
        if not _is_work_shared(mosaic, mosaics):
            transaction.on_commit(partial(build_cache_drop, mosaic))
    for canvas in planes:
        canvas.delete()
    for mosaic in mosaics:
        mosaic.delete()
    earlier = TrashEntry.objects.filter(target_id__in=[mosaic.pk for mosaic in mosaics])
    earlier.exclude(pk=payload["entry_id"]).delete()
    transaction.on_commit(partial(storage.entries_drop, ids))


def followup_files_drop(*, roi_ids: Sequence[uuid.UUID]) -> None:
    """Delete the files of follow-ups of ROIs once the transaction that deletes these commits."""
    for pk in Followup.all_objects.filter(roi__in=roi_ids).values_list("pk", flat=True):
        transaction.on_commit(partial(storage.folder_drop, storage.derived_folder(pk)))


def _hanging_on(mosaics: QuerySet[Mosaic], payload: Mapping[str, Any]) -> QuerySet[Mosaic]:
    """Mosaics that are removed with an item in the trash; the mosaic itself if it is the item."""
    target = uuid.UUID(payload["target_id"])
    if payload["kind"] == TrashKind.CASE:
        return mosaics.filter(case_id=target)
    if payload["kind"] == TrashKind.VIDEO:
        return mosaics.filter(video_id=target)
    return mosaics.filter(pk=target) if payload["kind"] == TrashKind.MOSAIC else mosaics.none()


def _followups_of(canvases: QuerySet[Canvas]) -> list[Followup]:
    """Follow-ups that begin or end on these."""
    ids = list(canvases.values_list("pk", flat=True))
    return list(Followup.all_objects.filter(Q(roi__canvas__in=ids) | Q(target__in=ids)))


def _cancel_jobs(targets: Sequence[uuid.UUID], user: User) -> None:
    """Cancel the unfinished jobs of these objects."""
    for job in Job.objects.filter(target_id__in=targets).exclude(state__in=ENDED_STATES):
        try:
            job_cancel(job=job, user=user)
        except ConflictError:
            continue  # it ended just now


def _is_work_shared(mosaic: Mosaic, purged: Iterable[Mosaic]) -> bool:
    """Return whether a mosaic that stays uses the same stages."""
    of_video = Mosaic.all_objects.filter(video=mosaic.video_id)
    stay = of_video.exclude(pk__in=[purged_mosaic.pk for purged_mosaic in purged])
    return any(build_cache_folder(other) == build_cache_folder(mosaic) for other in stay)
