"""Writes of ingest after a file is inspected, and after an item's job failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import models

from ml.imaging.results import RenditionResult, SlideInspection, VideoInspection
from ml.types import JsonObject
from portal.archive.models import (
    Canvas,
    CanvasKind,
    Case,
    CaseItem,
    ItemState,
    Modality,
    Slide,
    Video,
)
from portal.archive.services.gate.quarantine import item_quarantine
from portal.archive.services.items import canvas_id_of
from portal.archive.services.modality import case_modality_follow
from portal.archive.services.stains import STAIN_LONGEST, stain_spelled
from portal.archive.storage import files as storage
from portal.core.events import event_emit


def slide_ready(
    *, slide: Slide, folder: Path, inspected: SlideInspection, content_hash: str
) -> Canvas:
    """Publish the derived files of a slide and create its canvas. Call inside ``effect()``.

    Emits ``slide.ready``.

    Args:
        content_hash: SHA-256 of the file that tiles come from.
    """
    derived = storage.derived_folder(slide.pk)
    pixels = (
        storage.relative(derived / inspected.pixels)
        if inspected.pixels
        else storage.asset_name(slide.lab_id, slide.asset.sha256)
    )
    scaled = _scaled_by_hand(slide) if inspected.mpp_x is None else None
    file_range = asdict(inspected.display_range) if inspected.display_range else None
    canvas = _canvas(
        slide,
        kind=CanvasKind.STILL if inspected.kind == "still" else CanvasKind.SLIDE,
        modality=_modality(slide, inspected),
        width_px=inspected.width_px,
        height_px=inspected.height_px,
        mpp_x=scaled.mpp_x if scaled else inspected.mpp_x,
        mpp_y=scaled.mpp_y if scaled else inspected.mpp_y,
        is_scaled_by_hand=scaled is not None,
        file_display_range=file_range,
        display_range=_range_by_hand(slide) or file_range if file_range else None,
        has_icc_profile=inspected.has_icc_profile,
        levels=[asdict(level) for level in inspected.levels],
        content_hash=content_hash,
        pixels_path=pixels,
        thumbnail_path=storage.relative(derived / inspected.thumbnail),
    )
    storage.folder_publish(folder, derived)
    if inspected.stain and not slide.is_stain_by_hand:
        slide.stain = stain_spelled(slide, inspected.stain[:STAIN_LONGEST])
    slide.vendor = inspected.vendor
    slide.objective_power = inspected.objective_power
    slide.properties = inspected.properties
    _item_ready(slide, canvas, warnings=inspected.warnings)
    return canvas


def video_ready(
    *, video: Video, folder: Path, inspected: VideoInspection, rendition: RenditionResult | None
) -> Canvas:
    """Publish an inspected video, like ``slide_ready``; emits ``video.ready``.

    The canvas' pixels are the original's frames; for a DICOM object, those of the video in it.

    Args:
        rendition: The rendition; None if the browser plays the original.
    """
    derived = storage.derived_folder(video.pk)
    pixels = (
        storage.relative(derived / inspected.pixels)
        if inspected.pixels
        else storage.asset_name(video.lab_id, video.asset.sha256)
    )
    canvas = _canvas(
        video,
        kind=CanvasKind.VIDEO,
        modality=_modality_before(video) or Modality.ENDOSCOPY,
        width_px=inspected.width_px,
        height_px=inspected.height_px,
        levels=[],
        content_hash=video.asset.sha256,
        pixels_path=pixels,
        thumbnail_path=storage.relative(derived / inspected.poster),
    )
    storage.folder_publish(folder, derived)
    video.codec, video.container = inspected.codec[:40], inspected.container[:80]
    video.duration_s, video.fps = inspected.duration_s, inspected.fps
    video.geometry = asdict(inspected.geometry)
    video.frame_count, video.time_base_s = inspected.frame_count, inspected.time_base_s
    video.frames_path = storage.relative(derived / inspected.frames)
    video.media_path = storage.relative(derived / rendition.rendition) if rendition else pixels
    # what the rendition took off every frame's time
    video.media_offset_s = rendition.offset_pts * inspected.time_base_s if rendition else 0.0
    _item_ready(video, canvas, warnings=inspected.warnings)
    return canvas


def item_job_ended(*, payload: Mapping[str, Any]) -> None:
    """Put a file that did not pass the gate into quarantine; else mark its item as failed.

    Heard from ``job.ended``, in the transaction that ends the job. An item that became ready stays.
    """
    models: dict[str, type[Slide] | type[Video]] = {"slide": Slide, "video": Video}
    model = models.get(str(payload.get("target_type")))
    if model is None or payload.get("kind") not in ("slide_ingest", "video_ingest"):
        return
    if payload.get("state") not in ("failed", "cancelled"):
        return
    code = str(payload.get("error_code") or payload["state"])
    message = str(payload.get("error_message") or "The work was cancelled.")
    waiting = model.all_objects.filter(pk=payload["target_id"]).exclude(state=ItemState.READY)
    item: Slide | Video | None = waiting.first()
    if item is not None and not item_quarantine(item=item, code=code, message=message):
        waiting.update(state=ItemState.FAILED, error_code=code, error_message=message)


def item_preparing(*, item: Slide | Video) -> None:
    """A failed item is being prepared again (its job was retried from the jobs page)."""
    type(item).objects.filter(pk=item.pk, state=ItemState.FAILED).update(
        state=ItemState.PREPARING, error_code="", error_message=""
    )


def _modality(slide: Slide, inspected: SlideInspection) -> str:
    """Modality of the case for a still, if a person set it; else the one that was proposed."""
    if before := _modality_before(slide):
        return before
    case = Case.all_objects.filter(pk=slide.case_id, is_modality_by_hand=True).first()
    return case.modality if case is not None and inspected.kind == "still" else inspected.modality


def _modality_before(item: Slide | Video) -> str | None:
    """Modality of the canvas of an item that is prepared again or was imported."""
    rows = Canvas.all_objects.filter(pk=canvas_id_of(item.pk))
    return rows.values_list("modality", flat=True).first()


def _scaled_by_hand(slide: Slide) -> Canvas | None:
    """Canvas of an imported slide whose pixel size was set by hand."""
    rows = Canvas.objects.filter(pk=canvas_id_of(slide.pk), is_scaled_by_hand=True)
    canvas: Canvas | None = rows.first()
    return canvas


def _range_by_hand(slide: Slide) -> JsonObject | None:
    """The display range of an image that is prepared again or was imported, if it was set."""
    row = Canvas.objects.filter(pk=canvas_id_of(slide.pk)).first()
    is_set = row is not None and row.display_range != row.file_display_range
    return row.display_range if row is not None and is_set else None


def _canvas(item: Slide | Video, **fields: Any) -> Canvas:
    # The current title and stain: they may have been changed since the work began, and the earlier
    # title must not come back.
    titles = ["name", "stain", "is_stain_by_hand"] if isinstance(item, Slide) else ["name"]
    item.refresh_from_db(fields=titles, from_queryset=_lock_item(item))
    canvas, _ = Canvas.objects.update_or_create(
        pk=canvas_id_of(item.pk),
        defaults={
            "lab_id": item.lab_id,
            "case_id": item.case_id,
            "name": item.name,
            **fields,
        },
    )
    return canvas


def _lock_item(item: Slide | Video) -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = type(item).all_objects.select_for_update()
    return rows


def _item_ready(item: CaseItem, canvas: Canvas, *, warnings: tuple[str, ...]) -> None:
    item.canvas = canvas
    item.state, item.error_code, item.error_message = ItemState.READY, "", ""
    item.warnings = list(dict.fromkeys((*item.warnings, *warnings)))  # a second run adds the same
    item.save()
    case_modality_follow(case_id=canvas.case_id)
    name = item._meta.model_name
    event_emit(
        f"{name}.ready",
        lab_id=item.lab_id,
        payload={
            f"{name}_id": str(item.pk),
            "case_id": str(canvas.case_id),
            "canvas_id": str(canvas.pk),
        },
    )
