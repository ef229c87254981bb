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
from ml.imaging.results import (
    IDENTIFYING_TEXT,
    PhiDetectionConfig,
    PixelInspection,
    PixelKind,
    SlideInspection,
    VideoInspection,
)
from portal.archive import inspection
from portal.archive.models import (
    IntakeRules,
    ItemState,
    PixelRule,
    Redaction,
    Slide,
    Upload,
    Video,
)
from portal.archive.models.intake import FileScope
from portal.archive.selectors.intake import intake_rules_of, known_words_of, redaction_of
from portal.archive.services.clips import CLIP_KIND, ClipSpan, clip_write
from portal.archive.services.gate.cleaning import CleanFile, item_cleaned, item_placing, lab_key
from portal.archive.services.gate.findings import findings_as_sentences
from portal.archive.services.gate.quarantine import (
    NOT_CLEAN,
    PHI_IN_PIXELS,
    PIXELS_NOT_INSPECTED,
    evidence_drop,
    evidence_keep,
    item_is_imported,
    item_is_released,
)
from portal.archive.services.ingest import item_preparing, slide_ready, video_ready
from portal.archive.services.transfers.finishing import upload_finish as finish_upload
from portal.archive.services.transfers.finishing import upload_placing, upload_store
from portal.archive.storage import files as storage
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task

_Item = TypeVar("_Item", Slide, Video)
_Found = TypeVar("_Found")


@job_task(
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
        received, kind = finish_upload(upload=upload, progress=context.progress)
        with upload_placing(upload=upload, received=received), context.effect():
            upload_store(upload=upload, received=received, kind=kind)
    except PortalError as error:
        if isinstance(error, OSError):
            raise  # the store is unavailable; the job is retried
        raise UserError(error.message, code=error.code) from error
    return {"sha256": upload.sha256}


@job_task(
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
        source, clean = _deidentify(context, slide, scratch)
        folder = _folder(scratch)
        inspected = _inspect_file(context, inspection.slide_inspect, source, folder)
        if clean is not None and clean.stain:  # its field was taken out
            inspected = replace(inspected, stain=clean.stain)
        if (redaction := redaction_of(slide)) is not None:
            before, boxes = inspected, redaction.boxes
            make = partial(inspection.slide_redact, derived=folder, inspected=before, boxes=boxes)
            source, clean = _redact_file(
                context, make, source, clean, redaction=redaction, scratch=scratch
            )
            folder = _folder(source.parent)
            inspected = replace(
                _inspect_file(context, inspection.slide_inspect, source, folder),
                stain=before.stain,
                objective_power=before.objective_power,
                properties=before.properties,
                vendor=before.vendor,
            )
        is_rewritten = inspected.pixels == PIXELS_NAME
        pixels_hash = storage.file_sha256(folder / PIXELS_NAME) if is_rewritten else ""
        warnings = _pixels_checked(context, slide, inspected, source, folder, clean=clean)
        with _place_file(context, slide, clean, warnings):
            content_hash = pixels_hash or slide.asset.sha256
            canvas = slide_ready(
                slide=slide, folder=folder, inspected=inspected, content_hash=content_hash
            )
    return {"canvas_id": str(canvas.pk), "width_px": canvas.width_px, "height_px": canvas.height_px}


@job_task(
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
        source, clean = _deidentify(context, video, scratch)
        folder = _folder(scratch)
        inspected = _inspect_file(context, inspection.video_inspect, source, folder)
        if (redaction := redaction_of(video)) is not None:
            boxes = redaction.boxes
            make = partial(
                inspection.video_redact, derived=folder, inspected=inspected, boxes=boxes
            )
            source, clean = _redact_file(
                context, make, source, clean, redaction=redaction, scratch=scratch
            )
            folder = _folder(source.parent)
            inspected = _inspect_file(context, inspection.video_inspect, source, folder)
        warnings = _pixels_checked(context, video, inspected, source, folder, clean=clean)
        rendition = None
        if not inspected.browser_playable:
            render = partial(inspection.rendition_make, inspected=inspected)
            rendition = _inspect_file(context, render, source, folder)
        with _place_file(context, video, clean, warnings):
            canvas = video_ready(
                video=video, folder=folder, inspected=inspected, rendition=rendition
            )
    return {
        "canvas_id": str(canvas.pk),
        "frame_count": inspected.frame_count,
        "duration_s": inspected.duration_s,
        "warnings": list(inspected.warnings),
    }


@job_task(CLIP_KIND, title="Export clip", retry_on=(OSError, StorageFullError))
def video_clip(context: JobContext, *, video_id: str, first: int, last: int) -> JobResult:
    """Write a span of frames of a video as a new file."""
    try:
        span = ClipSpan(first, last)
        return clip_write(video_id=uuid.UUID(video_id), span=span, context=context)
    except StorageFullError:
        raise
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
    except MlError as error:
        raise UserError(_sentence(error), code=error.code) from error


def _item(model: type[_Item], item_id: str) -> _Item:
    item = model.objects.select_related("asset", "case").filter(pk=uuid.UUID(item_id)).first()
    if item is None:
        raise UserError("It was deleted before the job began.", code="gone")
    return item


def _folder(scratch: Path) -> Path:
    folder = scratch / "derived"
    folder.mkdir()
    return folder


def _deidentify(
    context: JobContext, item: Slide | Video, scratch: Path
) -> tuple[Path, CleanFile | None]:
    """The file to prepare: without names, where the lab's rules want that."""
    source = storage.asset_path(item.lab_id, item.asset.sha256)
    rules = intake_rules_of(item.lab_id)
    if not rules.takes_names_out or item.asset.removed is not None:
        return source, None
    folder = scratch / "clean"
    folder.mkdir()
    take_out = partial(inspection.names_take_out, key=lab_key(item.lab_id))
    path, inspected = _inspect_file(context, take_out, source, folder)
    is_left = bool(inspected.left) and redaction_of(item) is None  # redaction rewrites it
    if is_left and rules.must_be_clean and not item_is_released(item):
        raise UserError(f"It may contain names: {'; '.join(inspected.left)}.", code=NOT_CLEAN)
    sha256 = storage.file_sha256(path) if path else ""
    clean = CleanFile(
        path,
        sha256,
        removed=tuple(inspected.removed),
        left=tuple(inspected.left),
        stain=inspected.stain,
        removed_texts=tuple(inspected.removed_texts),
    )
    return path or source, clean


def _redact_file(
    context: JobContext,
    redact: Callable[..., Path],
    source: Path,
    clean: CleanFile | None,
    *,
    redaction: Redaction,
    scratch: Path,
) -> tuple[Path, CleanFile]:
    """Write a redacted copy to a separate folder; it takes the place of the de-identified file."""
    folder = scratch / "redacted"
    folder.mkdir()
    path = _inspect_file(context, redact, source, folder)
    count = len(redaction.boxes)
    clean_file = clean or CleanFile(None, "", removed=(), left=())
    return path, replace(
        clean_file,
        path=path,
        sha256=storage.file_sha256(path),
        removed=(
            *clean_file.removed,
            f"{count} {'place' if count == 1 else 'places'} in the picture",
        ),
        left=(),
        redaction=redaction,
    )


def _pixels_checked(
    context: JobContext,
    item: Slide | Video,
    inspected: SlideInspection | VideoInspection,
    source: Path,
    folder: Path,
    *,
    clean: CleanFile | None,
) -> list[str]:
    """Warnings about text and persons in the pixels; raises where the lab's rules hold the file.

    A file of an imported case is never held, because its ROIs depend on it.
    """
    rules = intake_rules_of(item.lab_id)
    rule_of = _rule_of_kinds(rules)
    has_text = {rules.identifying_text, rules.other_text} != {PixelRule.OFF}
    has_faces = rules.faces != PixelRule.OFF
    if not (has_text or has_faces) or item_is_released(item):
        return []
    may_hold = not item_is_imported(item)
    detect: Callable[..., PixelInspection] = (
        partial(inspection.video_phi_detect, inspected=inspected)
        if isinstance(inspected, VideoInspection)
        else partial(inspection.slide_phi_detect, inspected=inspected)
    )
    try:
        detected = detect(
            source,
            folder,
            config=PhiDetectionConfig(
                text=has_text,
                faces=has_faces,
                known_words=(*known_words_of(item), *(clean.removed_texts if clean else ())),
                ignored_words=tuple(rules.ignored_words),
            ),
            progress=context.progress,
        )
    except LimitExceededError as error:
        sentence = f"Its picture was not checked for text and faces: {_with_full_stop(str(error))}"
        if may_hold and PixelRule.HOLD in rule_of.values():
            raise UserError(sentence, code=PIXELS_NOT_INSPECTED) from error
        return [sentence]
    except MlError as error:
        raise UserError(_sentence(error), code=error.code) from error
    reported = tuple(
        finding for finding in detected.findings if rule_of[finding.kind] != PixelRule.OFF
    )
    sentences = findings_as_sentences(reported)
    if may_hold and any(rule_of[finding.kind] == PixelRule.HOLD for finding in reported):
        picture = (folder.parent / inspection.EVIDENCE_NAME).read_bytes()
        scope = _scope(context, item, inspected)
        with context.part():
            held_findings = replace(detected, findings=reported)
            evidence_keep(item=item, inspected=held_findings, picture=picture, scope=scope)
        message = f"It may show who somebody is. {'. '.join(sentences)}."
        raise UserError(message, code=PHI_IN_PIXELS)
    return [f"{sentence}." for sentence in sentences]


def _scope(
    context: JobContext, item: Slide | Video, inspected: SlideInspection | VideoInspection
) -> FileScope:
    """Kind, device and size of a file; the device is named by the file as it arrived."""
    original = storage.asset_path(item.lab_id, item.asset.sha256)
    device = inspection.device_read(original, progress=context.progress)
    kind = "video" if isinstance(inspected, VideoInspection) else inspected.kind
    return FileScope(kind, device, inspected.width_px, inspected.height_px)


def _rule_of_kinds(rules: IntakeRules) -> dict[PixelKind, str]:
    """The rule of each kind of finding; frames outside the body only warn."""
    outside = PixelRule.OFF if rules.faces == PixelRule.OFF else PixelRule.WARN
    rule_of: dict[PixelKind, str] = dict.fromkeys(IDENTIFYING_TEXT, rules.identifying_text)
    return rule_of | {"other": rules.other_text, "face": rules.faces, "outside_body": outside}


@contextmanager
def _place_file(
    context: JobContext, item: Slide | Video, clean: CleanFile | None, warnings: list[str]
) -> Iterator[None]:
    """``effect()`` with the file without names in place of the one that arrived."""
    with item_placing(item, clean), context.effect():
        if clean is not None:
            try:
                item_cleaned(item=item, clean=clean)
            except PortalError as error:
                if isinstance(error, OSError):
                    raise
                raise UserError(error.message, code=error.code) from error
            item.warnings = [f"Not removed: {sentence}." for sentence in clean.left]
        evidence_drop(item=item)
        item.warnings = [*item.warnings, *warnings]
        yield


def _inspect_file(
    context: JobContext, inspect: Callable[..., _Found], source: Path, folder: Path
) -> _Found:
    """Run an inspection in a child; an error of the file becomes the job's reason."""
    try:
        return inspect(source, folder, progress=context.progress)
    except MlError as error:
        raise UserError(_sentence(error), code=error.code) from error


def _sentence(error: MlError) -> str:
    text = str(error)
    return _with_full_stop(f"{text[:1].upper()}{text[1:]}")


def _with_full_stop(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
