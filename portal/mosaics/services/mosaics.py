"""Writes of mosaics: request, publication of a build, failure."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models.functions import Now

from ml.geometry import outline_bounds
from ml.types import ArrayF64
from portal.archive.models import Canvas, CanvasKind, ItemState, Modality, TrashEntry, Video
from portal.archive.services.items import TITLE_HANDLERS
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.core.text import stem_of
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.jobs.services import job_submit
from portal.labs.models import User
from portal.mosaics.build import BuiltComponent, BuiltFrame, BuiltMosaic
from portal.mosaics.models import FrameStatus, Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.options import options_clean, options_hash, options_text
from portal.mosaics.planes import frame_maps, view_polygon
from portal.mosaics.rules import require_build
from portal.mosaics.selectors.mosaics import span_frames
from portal.mosaics.services.states import ended_badly, state_again, state_failed

JOB_KIND = "mosaic_build"
REASON_MAX = 200
"""The length of ``MosaicFrame.reason``."""


@dataclass(frozen=True, slots=True)
class MosaicRequested:
    """A mosaic, its newest job, and whether anything new was started."""

    mosaic: Mosaic
    job: Job | None
    is_new: bool


def mosaic_create(
    *, video: Video, user: User, config: Mapping[str, Any] | None = None
) -> MosaicRequested:
    """Request the mosaic of a video; submits ``mosaic_build``.

    A video has one mosaic per configuration: a repeated request returns the existing one, and
    rebuilds it only if it failed or was cancelled.

    Raises:
        ForbiddenError: not an annotator.
        ConflictError: the video is not ready.
        InvalidInputError: the configuration is wrong.
    """
    require_build(user, video.lab_id)
    chosen = options_clean(config or {})
    if video.state != ItemState.READY or video.canvas_id is None:
        raise ConflictError(
            f"{video.name} is not ready yet. A mosaic needs a prepared video.",
            code="video-not-ready",
        )
    if "start_s" in chosen or "end_s" in chosen:
        span_frames(video, chosen)  # refuses one without frames
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
            is_new = state_again(mosaic)
        if is_new:
            return MosaicRequested(mosaic, _submit(mosaic, user), is_new=True)
    jobs = job_latest_for(target_type="mosaic", target_ids=[mosaic.pk])
    return MosaicRequested(mosaic, jobs.get(mosaic.pk), is_new=False)


def mosaic_ready(*, mosaic: Mosaic, folder: Path, built: BuiltMosaic) -> Canvas:
    """Publish a build: the folder by one rename, canvases, frames and state. Call in ``effect()``.

    A second run replaces what the first left. Emits ``mosaic.finished``.
    """
    derived = storage.derived_folder(mosaic.pk)
    total = len(built.components)
    # The title of now: its video may have been given another one while it was built.
    locked = Mosaic.all_objects.select_for_update()
    mosaic.refresh_from_db(fields=["name"], from_queryset=locked)
    canvases = [_write_component(mosaic, item, derived, total) for item in built.components]
    _drop_surplus(mosaic, keep=total)
    _write_frames(mosaic, built.frames, view_outline=built.view_outline)
    canvas = canvases[0]
    mosaic.canvas = canvas
    mosaic.state, mosaic.error_code, mosaic.error_message = ItemState.READY, "", ""
    mosaic.frame_count = len(built.frames)
    mosaic.registered_count = sum(f.status == FrameStatus.REGISTERED for f in built.frames)
    mosaic.seconds = round(built.seconds, 2)
    mosaic.motion_model = built.motion_model
    mosaic.anchor_index = built.components[0].anchor_index
    mosaic.engine, mosaic.quality = built.engine, built.quality
    mosaic.gaps, mosaic.view_outline = built.gaps, built.view_outline
    mosaic.save()
    storage.folder_publish(folder, derived)
    _emit(mosaic, "mosaic.finished", canvas_id=str(canvas.pk))
    return canvas


def mosaic_refused(*, mosaic: Mosaic, frames: Sequence[BuiltFrame]) -> None:
    """Keep why each frame is in no mosaic, for its page: none could be built of them.

    The end of its job marks it as failed. One that became ready in the meantime stays.
    """
    with transaction.atomic():
        waiting = Mosaic.objects.select_for_update().filter(state=ItemState.PREPARING)
        if waiting.filter(pk=mosaic.pk).exists():
            _write_frames(mosaic, frames, view_outline=())


def mosaic_job_ended(*, payload: Mapping[str, Any]) -> None:
    """Mark the mosaic of a failed or cancelled job as failed, with the reason.

    Heard from ``job.ended``, in the transaction that ends the job. One that became ready stays.
    Emits ``mosaic.failed``.
    """
    if not ended_badly(payload, kind=JOB_KIND):
        return
    mosaic = Mosaic.all_objects.filter(pk=payload["target_id"]).first()
    if mosaic is not None and state_failed(mosaic, payload):
        _emit(
            mosaic, "mosaic.failed", error_code=str(payload.get("error_code") or payload["state"])
        )


def _name(video: Video, config: Mapping[str, Any]) -> str:
    words = options_text(config)
    suffix = f" mosaic ({words})" if words else " mosaic"
    return f"{stem_of(video.name)[: 200 - len(suffix)]}{suffix}"


def mosaics_follow_title(video: Video) -> None:
    """Call a video's mosaics, their canvases and jobs by its present title. In its transaction."""
    for mosaic in Mosaic.all_objects.filter(video=video).order_by("pk"):
        mosaic.name = _name(video, mosaic.config)
        # A build locks its job before it writes the mosaic: in that order here too.
        jobs = Job.objects.filter(target_type="mosaic", target_id=mosaic.pk)
        jobs.update(target_name=mosaic.name)
        rows = Mosaic.all_objects.filter(pk=mosaic.pk)
        rows.update(name=mosaic.name, updated_at=Now())
        TrashEntry.objects.filter(target_id=mosaic.pk).update(name=mosaic.name)
        components = list(mosaic.components.select_related("canvas"))
        for component in components:
            before = component.canvas.name
            name = _component_name(mosaic, component.index, len(components))
            jobs = Job.objects.filter(target_type="canvas", target_id=component.canvas_id)
            jobs.update(target_name=name)
            Canvas.all_objects.filter(pk=component.canvas_id).update(name=name, updated_at=Now())
            for follow in TITLE_HANDLERS.all(Canvas):
                follow(component.canvas_id, before, name)


def component_ids(mosaic_id: uuid.UUID, index: int) -> tuple[uuid.UUID, uuid.UUID]:
    """Ids of a component's canvas and row, the same for every build of it."""
    return uuid.uuid5(mosaic_id, f"canvas {index}"), uuid.uuid5(mosaic_id, f"component {index}")


def frame_id(mosaic_id: uuid.UUID, index: int) -> uuid.UUID:
    """The id of the row of a frame."""
    return uuid.uuid5(mosaic_id, f"frame {index}")


def _component_name(mosaic: Mosaic, index: int, total: int) -> str:
    suffix = "" if total == 1 else f", component {index + 1}"
    return f"{mosaic.name[: 200 - len(suffix)]}{suffix}"


def _submit(mosaic: Mosaic, user: User) -> Job:
    return job_submit(
        kind=JOB_KIND,
        args={"mosaic_id": str(mosaic.pk)},
        lab=mosaic.lab,
        user=user,
        target=mosaic,
        target_name=mosaic.name,
    )


def _write_component(
    mosaic: Mosaic, component: BuiltComponent, derived: Path, total: int
) -> Canvas:
    """A component's canvas and row."""
    canvas_id, component_id = component_ids(mosaic.pk, component.index)
    canvas, _ = Canvas.objects.update_or_create(
        pk=canvas_id,
        defaults={
            "lab_id": mosaic.lab_id,
            "case_id": mosaic.case_id,
            "kind": CanvasKind.MOSAIC,
            **_modality(mosaic, canvas_id),
            "name": _component_name(mosaic, component.index, total),
            "width_px": component.width_px,
            "height_px": component.height_px,
            "levels": component.levels,
            "pixels_path": storage.relative(derived / component.pyramid),
            "thumbnail_path": storage.relative(derived / component.preview),
            "content_hash": component.content_hash,
        },
    )
    MosaicComponent.objects.update_or_create(
        pk=component_id,
        defaults={
            "mosaic": mosaic,
            "index": component.index,
            "canvas": canvas,
            "anchor_index": component.anchor_index,
            "registered_count": component.registered_count,
            "spans": component.spans,
            "layers": component.layers,
            "quality": component.quality,
        },
    )
    return canvas


def _modality(mosaic: Mosaic, canvas_id: uuid.UUID) -> dict[str, str]:
    """Modality of a new mosaic: that of its video. A mosaic that is built again keeps its own."""
    if Canvas.all_objects.filter(pk=canvas_id).exists():
        return {}
    canvas = mosaic.video.canvas
    return {"modality": canvas.modality if canvas is not None else Modality.ENDOSCOPY}


def _drop_surplus(mosaic: Mosaic, *, keep: int) -> None:
    """Components of an earlier run that this one does not have."""
    surplus = MosaicComponent.objects.filter(mosaic=mosaic, index__gte=keep)
    for component in surplus.select_related("canvas"):
        component.canvas.delete()


def _write_frames(
    mosaic: Mosaic, frames: Sequence[BuiltFrame], *, view_outline: Sequence[Sequence[float]]
) -> None:
    mosaic.frames.all().delete()
    bounds = _bounds(mosaic, frames, view_outline)
    MosaicFrame.objects.bulk_create(
        (
            MosaicFrame(
                id=frame_id(mosaic.pk, frame.index),
                mosaic=mosaic,
                index=frame.index,
                pts=frame.pts,
                H_mosaic_from_frame=frame.H_mosaic_from_frame,
                mesh=frame.mesh,
                status=frame.status,
                reason=frame.reason[:REASON_MAX],
                reason_code=frame.reason_code,
                is_key=frame.is_key,
                links=frame.links,
                error_px=frame.error_px,
                sharpness=frame.sharpness,
                uncertainty_px=frame.uncertainty_px,
                covariance=frame.covariance,
                component=frame.component,
                **bounds.get(frame.index, {}),
            )
            for frame in frames
        ),
        batch_size=500,
    )


def _bounds(
    mosaic: Mosaic, frames: Sequence[BuiltFrame], view_outline: Sequence[Sequence[float]]
) -> dict[int, dict[str, float]]:
    """Bounds of each placed frame; frames with a corner behind the plane are omitted."""
    placed = [f for f in frames if f.H_mosaic_from_frame is not None]
    canvas = mosaic.video.canvas
    if not placed or canvas is None:
        return {}
    view: ArrayF64 = view_polygon(
        view_outline, width_px=canvas.width_px, height_px=canvas.height_px
    )
    maps = frame_maps(
        [f.H_mosaic_from_frame for f in placed],
        [f.mesh for f in placed],
        size_px=(canvas.width_px, canvas.height_px),
    )
    rows = outline_bounds(maps, view)
    names = ("left", "top", "right", "bottom")
    grown = rows + np.array([-0.5, -0.5, 0.5, 0.5])  # pixels reach half a pixel around
    return {
        frame.index: dict(zip(names, row, strict=True))
        for frame, row in zip(placed, grown.tolist(), strict=True)
        if all(math.isfinite(value) for value in row)
    }


def _emit(mosaic: Mosaic, name: str, **extra: str) -> None:
    payload = {
        "mosaic_id": str(mosaic.pk),
        "video_id": str(mosaic.video_id),
        "case_id": str(mosaic.case_id),
        **extra,
    }
    event_emit(name, lab_id=mosaic.lab_id, payload=payload)
