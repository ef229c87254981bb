"""Slides and videos of a case: create from an upload, try again, delete."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.core.files.base import File
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from ml.imaging.formats.sniff import FileKind
from portal.archive.events import ArchiveEvent
from portal.archive.models import (
    Canvas,
    Case,
    CaseItem,
    ItemState,
    Slide,
    TrashEntry,
    Upload,
    UploadState,
    Video,
)
from portal.archive.rules import require_edit
from portal.archive.selectors.intake import intake_rules_of
from portal.archive.services.assets import asset_lock
from portal.archive.services.trash import trash_put
from portal.archive.services.uploads import content_kind_of, filename_clean, upload_receiving
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.core.registry import Registry
from portal.core.text import name_clean
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.jobs.services import job_submit
from portal.labs.models import User

_MODELS: dict[FileKind, type[Slide] | type[Video]] = {
    "slide": Slide,
    "still": Slide,
    "video": Video,
}

TITLE_HANDLERS: Registry[type[Canvas], Callable[[uuid.UUID, str, str], None]] = Registry()
"""Called with a canvas's id, its earlier title, which may have named a patient and so is in no
event, and its new one, in the change's transaction."""


@dataclass(frozen=True, slots=True)
class ItemReceived:
    """A slide or video of a case, its newest job, and whether it is new."""

    item: Slide | Video
    job: Job | None
    is_new: bool


def canvas_id_of(item_id: uuid.UUID) -> uuid.UUID:
    """Deterministic id of a slide's or video's canvas: a repeated job finds the same row."""
    return uuid.uuid5(item_id, "canvas")


def item_receive(
    *,
    case: Case,
    file: BinaryIO | File[Any],
    filename: str,
    user: User,
    name: str = "",
    kinds: tuple[FileKind, ...] = ("slide", "still", "video"),
) -> ItemReceived:
    """Receive a file and make a slide or a video of it, by its content. Submits its ingest job.

    Forms, API and demo all come this way. The same bytes in the same case give the existing item.
    Raises what ``upload_receive`` raises.
    """
    with upload_receiving(
        case=case, file=file, filename=filename, user=user, kinds=kinds
    ) as received:
        return _create(_MODELS[received.kind], upload=received.upload, user=user, name=name)


def item_create(
    *, upload: Upload, user: User, name: str = "", is_again: bool = False
) -> ItemReceived:
    """Make a slide or a video of a complete upload, by its content.

    Args:
        is_again: it was received before, so no ``item.received`` is emitted.
    """
    if upload.asset is None:
        raise ConflictError("This upload is not complete.", code="upload-incomplete")
    kind = content_kind_of(upload.asset)
    with transaction.atomic():
        asset_lock((upload.lab_id, upload.asset.sha256))
        if not Upload.objects.filter(pk=upload.pk).exists():
            raise ConflictError(
                f"{upload.filename} has been deleted in the meantime.", code="upload-gone"
            )
        return _create(_MODELS[kind], upload=upload, user=user, name=name, is_again=is_again)


def item_retry(*, item: Slide | Video, user: User) -> Job:
    """Submit the ingest of a failed item again."""
    require_edit(user, item.lab_id)
    with transaction.atomic():
        changed = (
            type(item)
            .objects.filter(pk=item.pk, state=ItemState.FAILED)
            .update(state=ItemState.PREPARING, error_code="", error_message="")
        )
        if not changed:
            raise ConflictError(f"{item.name} has not failed.", code="item-state")
        item.refresh_from_db()
        return item_submit(item, user=user)


def item_rename(*, item: Slide | Video, user: User, name: str) -> Slide | Video:
    """Rename a slide or video everywhere: on its canvas, its jobs, and in reports.

    Emits ``item.renamed``, which contains neither title: one may name a patient.

    The file's name is replaced as well. Annotations, findings and measurements are unchanged.
    """
    require_edit(user, item.lab_id)
    if not name_clean(name):
        raise InvalidInputError("name: enter a title.")
    title = filename_clean(name)
    kind = str(item._meta.model_name)
    with transaction.atomic():
        # Update rows directly, so that a job's concurrent writes remain. Jobs first, as a job locks
        # its
        # own row before it writes: each would wait for the other otherwise.
        before, canvas_id = item.name, canvas_id_of(item.pk)
        uploads = Upload.objects.filter(case_id=item.case_id, asset_id=item.asset_id)
        jobs = Q(target_type="upload", target_id__in=uploads.values("pk"))
        jobs |= Q(target_type=kind, target_id=item.pk)
        jobs |= Q(target_type="canvas", target_id=canvas_id)
        Job.objects.filter(jobs).update(target_name=title)
        type(item).objects.filter(pk=item.pk).update(name=title, updated_at=Now())
        Canvas.objects.filter(pk=canvas_id).update(name=title, updated_at=Now())
        uploads.update(filename=title, name=title)
        for follow in TITLE_HANDLERS.all(Canvas):
            follow(canvas_id, before, title)
        _emit(item, ArchiveEvent.ITEM_RENAMED)
    item.refresh_from_db(fields=["name"])
    return item


def item_delete(*, item: Slide | Video, user: User) -> TrashEntry:
    """Put a slide or video into the trash, with its canvas and everything on it.

    Emits ``trash.put``.

    Raises:
        NotFoundError: It was deleted in the meantime.
        ConflictError: It, or a mosaic of it, is still being prepared.
    """
    require_edit(user, item.lab_id)
    with transaction.atomic():
        require_prepared([item])
        return trash_put(item=item, user=user)


def require_prepared(items: Iterable[Slide | Video]) -> None:
    """Raise ``ConflictError`` if an item has an unfinished job."""
    for item in items:
        job = _latest_job(item) if item.state == ItemState.PREPARING else None
        if job is not None and not job.has_ended:
            raise ConflictError(
                f"{item.name} is still being prepared; cancel its job first.", code="item-state"
            )


def item_submit(item: Slide | Video, *, user: User) -> Job:
    """Submit the ingest job of a new item; the caller has checked the rights."""
    kind = item._meta.model_name
    return job_submit(
        kind=f"{kind}_ingest",
        args={f"{kind}_id": str(item.pk)},
        lab=item.lab,
        user=user,
        target=item,
        target_name=item.name,
    )


def _create(
    model: type[Slide] | type[Video],
    *,
    upload: Upload,
    user: User,
    name: str,
    is_again: bool = False,
) -> ItemReceived:
    require_edit(user, upload.lab_id)
    if upload.asset is None or upload.case_id is None:
        raise ConflictError("This upload is not complete.", code="upload-incomplete")
    with transaction.atomic():
        item, is_new = model.objects.get_or_create(
            case_id=upload.case_id,
            asset=upload.asset,
            defaults={
                "lab_id": upload.lab_id,
                "name": filename_clean(name) if name else _title(model, upload),
                "created_by": user,
            },
        )
        if is_new:
            Upload.objects.filter(pk=upload.pk).update(state=UploadState.STORED)
            if not is_again:
                _emit(item, "item.received", sha256=upload.asset.sha256)
            return ItemReceived(item, item_submit(item, user=user), True)
    if item.state == ItemState.FAILED:
        return ItemReceived(item, item_retry(item=item, user=user), False)
    return ItemReceived(item, _latest_job(item), False)


def _title(model: type[Slide] | type[Video], upload: Upload) -> str:
    """The file's name; a number within the case if the lab hides names of files."""
    if intake_rules_of(upload.lab_id).titles_from_files:
        return filename_clean(upload.filename)
    number = model.all_objects.filter(case_id=upload.case_id).count() + 1
    return f"{str(model._meta.verbose_name).capitalize()} {number}"


def _emit(item: Slide | Video, event: str, **extra: str) -> None:
    payload = {
        "item_id": str(item.pk),
        "item_kind": str(item._meta.model_name),
        "case_id": str(item.case_id),
        **extra,
    }
    event_emit(event, lab_id=item.lab_id, payload=payload)


def _latest_job(item: CaseItem) -> Job | None:
    name = str(item._meta.model_name)
    return job_latest_for(target_type=name, target_ids=[item.pk]).get(item.pk)
