"""Ingest: a child process opens the file, then one rename and one transaction publish the result.

A file that the engine refuses (``MlError``) ends its job with that reason, as a sentence
(``UserError``); ``job.ended`` then marks the item as failed, in the same transaction
(``item_job_ended``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from ml.errors import MlError
from ml.imaging.formats.sniff import PIXELS_NAME
from portal.archive import inspection, services, storage
from portal.archive.models import ItemState, Slide, Upload, Video
from portal.archive.services import item_preparing, slide_ready, video_ready
from portal.core.errors import PortalError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task

_Item = TypeVar("_Item", Slide, Video)
_Found = TypeVar("_Found")


@task(
    "upload_finish",
    title="Check upload",
    priority=Priority.INGEST,
    max_attempts=3,
    retry_on=(OSError,),
)
def upload_finish(context: JobContext, *, upload_id: str) -> JobResult:
    """Check a file that arrived in pieces, keep it, and have it prepared."""
    upload = Upload.objects.select_related("case", "created_by").filter(pk=upload_id).first()
    if upload is None:
        raise UserError("The upload was deleted before it was checked.", code="gone")
    if upload.asset_id is not None:
        return {"sha256": upload.sha256}
    try:
        received, kind = services.upload_finish(upload=upload, progress=context.progress)
        with services.upload_placing(upload=upload, received=received), context.effect():
            services.upload_store(upload=upload, received=received, kind=kind)
    except PortalError as error:
        if isinstance(error, OSError):
            raise  # the store is away for the moment
        raise UserError(error.message, code=error.code) from error
    return {"sha256": upload.sha256}


@task(
    "slide_ingest",
    title="Prepare slide",
    priority=Priority.INGEST,
    max_attempts=3,
    retry_on=(OSError,),
)
def slide_ingest(context: JobContext, *, slide_id: str) -> JobResult:
    """Check a slide or still, derive thumbnail and tiles, show it on a canvas."""
    slide = _item(Slide, slide_id)
    if slide.state == ItemState.READY:
        return {"canvas_id": str(slide.canvas_id)}
    item_preparing(item=slide)
    source = storage.asset_path(slide.lab_id, slide.asset.sha256)
    with context.scratch() as scratch:
        folder = _folder(scratch)
        found = _inspected(context, inspection.slide_inspect, source, folder)
        made = found.pixels == PIXELS_NAME
        content_hash = storage.file_sha256(folder / PIXELS_NAME) if made else slide.asset.sha256
        with context.effect():
            canvas = slide_ready(slide=slide, folder=folder, found=found, content_hash=content_hash)
    return {"canvas_id": str(canvas.pk), "width_px": canvas.width_px, "height_px": canvas.height_px}


@task(
    "video_ingest",
    title="Prepare video",
    priority=Priority.INGEST,
    max_attempts=3,
    retry_on=(OSError,),
)
def video_ingest(context: JobContext, *, video_id: str) -> JobResult:
    """Read a video's frame table and poster, make a rendition where the browser needs one."""
    video = _item(Video, video_id)
    if video.state == ItemState.READY:
        return {"canvas_id": str(video.canvas_id)}
    item_preparing(item=video)
    source = storage.asset_path(video.lab_id, video.asset.sha256)
    with context.scratch() as scratch:
        folder = _folder(scratch)
        found = _inspected(context, inspection.video_inspect, source, folder)
        made = None
        if not found.browser_playable:
            make = partial(inspection.rendition_make, found=found)
            made = _inspected(context, make, source, folder)
        with context.effect():
            canvas = video_ready(video=video, folder=folder, found=found, made=made)
    return {
        "canvas_id": str(canvas.pk),
        "frame_count": found.frame_count,
        "duration_s": found.duration_s,
        "warnings": list(found.warnings),
    }


def _item(model: type[_Item], item_id: str) -> _Item:
    item = model.objects.select_related("asset", "case").filter(pk=uuid.UUID(item_id)).first()
    if item is None:
        raise UserError("It was deleted before its work began.", code="gone")
    return item


def _folder(scratch: Path) -> Path:
    folder = scratch / "derived"
    folder.mkdir()
    return folder


def _inspected(
    context: JobContext, inspect: Callable[..., _Found], source: Path, folder: Path
) -> _Found:
    """What a child process found; what is wrong with the file becomes the job's reason."""
    try:
        return inspect(source, folder, progress=context.progress)
    except MlError as error:
        raise UserError(_sentence(error), code=error.code) from error


def _sentence(error: MlError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
