"""Ingest: a child process opens the file, then one rename and one transaction publish the result.

A file that the engine refuses (``MlError``) ends its job with that reason, as a sentence
(``UserError``); ``job.ended`` then marks the item as failed, in the same transaction
(``item_job_ended``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ml.errors import LimitExceededError, MlError
from ml.imaging.formats.sniff import PIXELS_NAME
from ml.imaging.inspections import LookedThrough
from portal.archive import inspection, services, storage
from portal.archive.models import ItemState, Seen, Slide, Upload, Video
from portal.archive.selectors.intake import intake_rules_of
from portal.archive.services import CleanFile, item_preparing, slide_ready, video_ready
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
    with context.scratch() as scratch:
        source, clean = _cleaned(context, slide, scratch)
        folder = _folder(scratch)
        found = _inspected(context, inspection.slide_inspect, source, folder)
        if clean is not None and clean.stain:  # its field was taken out
            found = replace(found, stain=clean.stain)
        made = found.pixels == PIXELS_NAME
        pixels_hash = storage.file_sha256(folder / PIXELS_NAME) if made else ""
        told = _looked_at(
            context, slide, partial(inspection.slide_look, found=found), source, folder
        )
        with _placed(context, slide, clean, told):
            content_hash = pixels_hash or slide.asset.sha256
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
    with context.scratch() as scratch:
        source, clean = _cleaned(context, video, scratch)
        folder = _folder(scratch)
        found = _inspected(context, inspection.video_inspect, source, folder)
        told = _looked_at(
            context, video, partial(inspection.video_look, found=found), source, folder
        )
        made = None
        if not found.browser_playable:
            make = partial(inspection.rendition_make, found=found)
            made = _inspected(context, make, source, folder)
        with _placed(context, video, clean, told):
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
        raise UserError("It was deleted before the job began.", code="gone")
    return item


def _folder(scratch: Path) -> Path:
    folder = scratch / "derived"
    folder.mkdir()
    return folder


def _cleaned(
    context: JobContext, item: Slide | Video, scratch: Path
) -> tuple[Path, CleanFile | None]:
    """The file to prepare: without names, where the lab's rules want that."""
    source = storage.asset_path(item.lab_id, item.asset.sha256)
    rules = intake_rules_of(item.lab_id)
    if not rules.takes_names_out or item.asset.removed is not None:
        return source, None
    folder = scratch / "clean"
    folder.mkdir()
    take_out = partial(inspection.names_take_out, key=services.lab_key(item.lab_id))
    path, told = _inspected(context, take_out, source, folder)
    if told.left and rules.must_be_clean and not services.item_is_released(item):
        raise UserError(f"It may contain names: {'; '.join(told.left)}.", code=services.NOT_CLEAN)
    sha256 = storage.file_sha256(path) if path else ""
    clean = CleanFile(
        path, sha256, removed=tuple(told.removed), left=tuple(told.left), stain=told.stain
    )
    return path or source, clean


def _looked_at(
    context: JobContext,
    item: Slide | Video,
    look: Callable[..., LookedThrough],
    source: Path,
    folder: Path,
) -> list[str]:
    """What the pixels reveal, as sentences; where the lab's rules want it, the file is held back.

    An imported one is never held: regions wait for it.
    """
    rules = intake_rules_of(item.lab_id)
    text, faces = (rule != Seen.OFF for rule in (rules.text_in_pixels, rules.faces_in_pixels))
    if not (text or faces) or services.item_is_released(item):
        return []
    held_for = {"text": rules.text_in_pixels, "face": rules.faces_in_pixels}
    may_hold = not services.item_is_imported(item)
    try:
        seen = look(source, folder, text=text, faces=faces, progress=context.progress)
    except LimitExceededError as error:
        sentence = f"Its picture was not checked for text and faces: {_ended(str(error))}"
        if may_hold and Seen.HOLD in held_for.values():
            raise UserError(sentence, code=services.NOT_LOOKED) from error
        return [sentence]
    except MlError as error:
        raise UserError(_sentence(error), code=error.code) from error
    told = services.told_of(seen.found)
    if may_hold and any(held_for.get(one.kind) == Seen.HOLD for one in seen.found):
        picture = (folder.parent / inspection.EVIDENCE_NAME).read_bytes()
        with context.part():
            services.evidence_keep(item=item, seen=seen, picture=picture)
        raise UserError(f"It may show who somebody is. {'. '.join(told)}.", code=services.SEEN)
    return [f"{sentence}." for sentence in told]


@contextmanager
def _placed(
    context: JobContext, item: Slide | Video, clean: CleanFile | None, told: list[str]
) -> Iterator[None]:
    """``effect()`` with the file without names in place of the one that arrived."""
    with services.item_placing(item, clean), context.effect():
        if clean is not None:
            try:
                services.item_cleaned(item=item, clean=clean)
            except PortalError as error:
                if isinstance(error, OSError):
                    raise
                raise UserError(error.message, code=error.code) from error
            item.warnings = [f"Not removed: {sentence}." for sentence in clean.left]
        services.evidence_drop(item=item)
        item.warnings = [*item.warnings, *told]
        yield


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
    return _ended(f"{text[:1].upper()}{text[1:]}")


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
