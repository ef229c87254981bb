"""Mosaic writes: ask for one, publish what was built, note that the work failed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from portal.archive import storage
from portal.archive.models import Canvas, CanvasKind, ItemState, Video
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.jobs.services import job_submit
from portal.labs.models import User
from portal.mosaics.build import Built
from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame
from portal.mosaics.options import options_clean, options_hash, options_words
from portal.mosaics.rules import require_build

JOB_KIND = "mosaic_build"
REASON_MAX = 200


@dataclass(frozen=True, slots=True)
class MosaicRequested:
    """A mosaic, its newest job, and whether anything new was started."""

    mosaic: Mosaic
    job: Job | None
    is_new: bool


def mosaic_create(
    *, video: Video, user: User, config: Mapping[str, Any] | None = None
) -> MosaicRequested:
    """Ask for the mosaic of a video; submits ``mosaic_build``.

    A video has one mosaic of each configuration: asking again gives that one, and starts it anew
    only where it failed or was cancelled.

    Raises:
        ForbiddenError: not an annotator.
        ConflictError: the video is not ready.
        InvalidInputError: the configuration is wrong.
    """
    require_build(user, video.lab_id)
    chosen = options_clean(config or {})
    if video.state != ItemState.READY or video.canvas_id is None:
        raise ConflictError(
            f"{video.name} is not ready yet: a mosaic is made from a prepared video.",
            code="video-not-ready",
        )
    with transaction.atomic():
        mosaic, is_new = Mosaic.objects.select_related("video", "canvas", "case").get_or_create(
            video=video,
            config_hash=options_hash(chosen),
            defaults={
                "lab_id": video.lab_id,
                "case_id": video.case_id,
                "name": _name(video, chosen),
                "config": chosen,
                "created_by": user,
            },
        )
        if not is_new:
            is_new = _preparing_again(mosaic)
        if is_new:
            return MosaicRequested(mosaic, _submit(mosaic, user), is_new=True)
    jobs = job_latest_for(target_type="mosaic", target_ids=[mosaic.pk])
    return MosaicRequested(mosaic, jobs.get(mosaic.pk), is_new=False)


def mosaic_preparing(*, mosaic: Mosaic) -> None:
    """A failed mosaic is being built again (its job was retried from the jobs page)."""
    _preparing_again(mosaic)


def mosaic_ready(*, mosaic: Mosaic, folder: Path, built: Built) -> Canvas:
    """Publish a build: the folder by one rename, canvas, frames and state. Call in ``effect()``.

    A second run replaces what the first left. Emits ``mosaic.finished``.
    """
    derived = storage.derived_folder(mosaic.pk)
    canvas, _ = Canvas.objects.update_or_create(
        pk=uuid.uuid5(mosaic.pk, "canvas"),
        defaults={
            "lab_id": mosaic.lab_id,
            "case_id": mosaic.case_id,
            "kind": CanvasKind.MOSAIC,
            "name": mosaic.name,
            "width_px": built.width_px,
            "height_px": built.height_px,
            "levels": built.levels,
            "pixels_path": storage.relative(derived / built.pyramid),
            "thumbnail_path": storage.relative(derived / built.preview),
            "content_hash": built.content_hash,
        },
    )
    _write_frames(mosaic, built)
    mosaic.canvas = canvas
    mosaic.state, mosaic.error_code, mosaic.error_message = ItemState.READY, "", ""
    mosaic.frame_count = len(built.frames)
    mosaic.registered_count = sum(f.status == FrameStatus.REGISTERED for f in built.frames)
    mosaic.seconds = round(built.seconds, 2)
    mosaic.motion_model, mosaic.anchor_index = built.motion_model, built.anchor_index
    mosaic.save()
    storage.folder_publish(folder, derived)
    _emit(mosaic, "mosaic.finished", canvas_id=str(canvas.pk))
    return canvas


def mosaic_job_ended(*, payload: Mapping[str, Any]) -> None:
    """Mark the mosaic of a failed or cancelled job as failed, with the reason.

    Heard from ``job.ended``, in the transaction that ends the job. One that became ready stays.
    Emits ``mosaic.failed``.
    """
    if payload.get("kind") != JOB_KIND or payload.get("state") not in ("failed", "cancelled"):
        return
    code = str(payload.get("error_code") or payload["state"])
    changed = (
        Mosaic.objects.filter(pk=payload["target_id"])
        .exclude(state=ItemState.READY)
        .update(
            state=ItemState.FAILED,
            error_code=code,
            error_message=str(payload.get("error_message") or "The work was cancelled."),
        )
    )
    if changed:
        mosaic = Mosaic.objects.get(pk=payload["target_id"])
        _emit(mosaic, "mosaic.failed", error_code=code)


def _name(video: Video, config: Mapping[str, Any]) -> str:
    words = options_words(config)
    suffix = f" mosaic ({words})" if words else " mosaic"
    return f"{video.name[: 200 - len(suffix)]}{suffix}"


def _preparing_again(mosaic: Mosaic) -> bool:
    """Back from *failed*; False where another caller did it, or where it has not failed."""
    changed = Mosaic.objects.filter(pk=mosaic.pk, state=ItemState.FAILED).update(
        state=ItemState.PREPARING, error_code="", error_message=""
    )
    if changed:
        mosaic.state, mosaic.error_code, mosaic.error_message = ItemState.PREPARING, "", ""
    return changed == 1


def _submit(mosaic: Mosaic, user: User) -> Job:
    return job_submit(
        kind=JOB_KIND,
        args={"mosaic_id": str(mosaic.pk)},
        lab=mosaic.lab,
        user=user,
        target=mosaic,
        target_name=mosaic.name,
    )


def _write_frames(mosaic: Mosaic, built: Built) -> None:
    mosaic.frames.all().delete()
    MosaicFrame.objects.bulk_create(
        (
            MosaicFrame(
                id=uuid.uuid5(mosaic.pk, f"frame {frame.index}"),
                mosaic=mosaic,
                index=frame.index,
                pts=frame.pts,
                H_mosaic_from_frame=frame.H_mosaic_from_frame,
                status=frame.status,
                reason=frame.reason[:REASON_MAX],
                links=frame.links,
                error_px=frame.error_px,
            )
            for frame in built.frames
        ),
        batch_size=500,
    )


def _emit(mosaic: Mosaic, name: str, **more: str) -> None:
    payload = {
        "mosaic_id": str(mosaic.pk),
        "video_id": str(mosaic.video_id),
        "case_id": str(mosaic.case_id),
        **more,
    }
    event_emit(name, lab_id=mosaic.lab_id, payload=payload)
