"""Deletion of mosaics: into the bin, out of it, and for good with rows and files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.archive import storage
from portal.archive.models import BinEntry, BinKind, Canvas, Video
from portal.archive.services import bin_put
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import ENDED, Job
from portal.jobs.services import job_cancel
from portal.labs.models import User
from portal.mosaics.build_cache import build_cache_drop, build_cache_folder
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.rules import require_build


def mosaic_delete(*, mosaic: Mosaic, user: User) -> BinEntry:
    """Put a mosaic into the bin, with its components and what is drawn on them. The video stays.

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
        entry = bin_put(item=mosaic, user=user)
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


def mosaics_binned(*, payload: Mapping[str, Any]) -> None:
    """Put the mosaics of what was put into the bin there too. Heard from ``bin.put``.

    Raises:
        ConflictError: one of them is being built.
    """
    mosaics = _hanging_on(Mosaic.objects.all(), payload)
    if payload["kind"] != BinKind.MOSAIC:
        at_work = Job.objects.filter(target_id__in=mosaics.values("pk")).exclude(state__in=ENDED)
        if at_work.exists():
            raise ConflictError(
                "One of its mosaics is still being built. Cancel that job first.", code="item-state"
            )
    taken = list(mosaics.values_list("pk", flat=True)) or [uuid.UUID(payload["target_id"])]
    mosaics.update(bin_entry=payload["entry_id"])
    planes = Canvas.objects.filter(mosaic_component__mosaic_id__in=taken).values("pk")
    Canvas.objects.filter(pk__in=list(planes)).update(bin_entry=payload["entry_id"])


def mosaics_restored(*, payload: Mapping[str, Any]) -> None:
    """Restore mosaics with what they were deleted with. Heard from ``bin.restored``.

    Raises:
        ConflictError: a mosaic whose video is in the bin.
    """
    mosaics = Mosaic.everything.filter(bin_entry=payload["entry_id"])
    for mosaic in mosaics if payload["kind"] == BinKind.MOSAIC else ():
        if not Video.objects.filter(pk=mosaic.video_id).exists():
            raise ConflictError(
                f"The video of {mosaic.name} is deleted as well: restore the video first.",
                code="video-in-bin",
            )
    mosaics.update(bin_entry=None)


def mosaics_purge(*, payload: Mapping[str, Any]) -> None:
    """Delete mosaics and follow-ups for good, rows and files. Heard from ``bin.purging``.

    Those that went into the bin before, by themselves, are purged with the video they hang on.
    """
    mosaics = list(_hanging_on(Mosaic.everything.all(), payload))
    planes = list(Canvas.everything.filter(mosaic_component__mosaic__in=mosaics))
    gone = Q(bin_entry=payload["entry_id"]) | Q(pk__in=[canvas.pk for canvas in planes])
    followups = _followups_of(Canvas.everything.filter(gone))
    ids = {str(one.pk) for one in (*mosaics, *followups, *planes)}
    for followup in followups:
        followup.delete()
    for mosaic in mosaics:
        if not _is_work_shared(mosaic, mosaics):
            transaction.on_commit(partial(build_cache_drop, mosaic))
    for canvas in planes:
        canvas.delete()
    for mosaic in mosaics:
        mosaic.delete()
    earlier = BinEntry.objects.filter(target_id__in=[mosaic.pk for mosaic in mosaics])
    earlier.exclude(pk=payload["entry_id"]).delete()
    transaction.on_commit(partial(storage.entries_drop, ids))


def _hanging_on(mosaics: QuerySet[Mosaic], payload: Mapping[str, Any]) -> QuerySet[Mosaic]:
    """Those that go with what was put into the bin; the mosaic itself, where it was one."""
    target = uuid.UUID(payload["target_id"])
    if payload["kind"] == BinKind.CASE:
        return mosaics.filter(case_id=target)
    if payload["kind"] == BinKind.VIDEO:
        return mosaics.filter(video_id=target)
    return mosaics.filter(pk=target) if payload["kind"] == BinKind.MOSAIC else mosaics.none()


def _followups_of(canvases: QuerySet[Canvas]) -> list[Followup]:
    """Follow-ups that begin or end on these."""
    ids = list(canvases.values_list("pk", flat=True))
    return list(Followup.everything.filter(Q(roi__canvas__in=ids) | Q(target__in=ids)))


def _cancel_jobs(targets: Sequence[uuid.UUID], user: User) -> None:
    """Stop what is at work on these."""
    for job in Job.objects.filter(target_id__in=targets).exclude(state__in=ENDED):
        try:
            job_cancel(job=job, user=user)
        except ConflictError:
            continue  # it ended just now


def _is_work_shared(mosaic: Mosaic, purged: Iterable[Mosaic]) -> bool:
    """Whether a mosaic that stays uses the same stages."""
    others = Mosaic.everything.filter(video=mosaic.video_id)
    stay = others.exclude(pk__in=[one.pk for one in purged])
    return any(build_cache_folder(other) == build_cache_folder(mosaic) for other in stay)
