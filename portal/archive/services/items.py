"""Slides and videos of a case: create from an upload, try again, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

from django.core.files.base import File
from django.db import transaction
from django.db.models.deletion import Collector

from ml.imaging.sniff import FileKind
from portal.archive import storage
from portal.archive.models import Canvas, Case, CaseItem, ItemState, Slide, Upload, Video
from portal.archive.rules import require_edit
from portal.archive.services.cases import asset_release
from portal.archive.services.uploads import content_kind, name_clean, upload_receive
from portal.core.errors import ConflictError
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.jobs.services import job_submit
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class ItemReceived:
    """A slide or video of a case, its newest job, and whether it is new."""

    item: Slide | Video
    job: Job | None
    is_new: bool


def item_receive(
    *,
    case: Case,
    file: BinaryIO | File[Any],
    filename: str,
    user: User,
    name: str = "",
    only: tuple[FileKind, ...] = ("slide", "still", "video"),
) -> ItemReceived:
    """Receive a file and make a slide or a video of it, by its content. Submits its ingest job.

    Forms, API and demo all come this way. The same bytes in the same case give the item there is.
    Raises what ``upload_receive`` raises.
    """
    upload = upload_receive(case=case, file=file, filename=filename, user=user, only=only)
    return item_create(upload=upload, user=user, name=name)


def item_create(*, upload: Upload, user: User, name: str = "") -> ItemReceived:
    """A slide or a video from a complete upload, whichever its content is."""
    if upload.asset is None:
        raise ConflictError("This upload is not complete.", code="upload-incomplete")
    path = storage.asset_path(upload.lab_id, upload.asset.sha256)
    is_video = content_kind(path, filename=upload.filename) == "video"
    create = video_create if is_video else slide_create
    return create(upload=upload, user=user, name=name)


def slide_create(*, upload: Upload, user: User, name: str = "") -> ItemReceived:
    """A slide (or still) in the state *preparing*; submits ``slide_ingest``."""
    return _create(Slide, upload=upload, user=user, name=name)


def video_create(*, upload: Upload, user: User, name: str = "") -> ItemReceived:
    """A video in the state *preparing*; submits ``video_ingest``."""
    return _create(Video, upload=upload, user=user, name=name)


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
        return _submit(item, user=user)


def item_delete(*, item: Slide | Video, user: User) -> None:
    """Delete a slide or video on which nobody has worked yet, with its canvas and its bytes.

    Raises:
        ConflictError: regions, mosaics or anything else hangs on it; the message counts them.
    """
    require_edit(user, item.lab_id)
    with transaction.atomic():
        if item.state == ItemState.PREPARING:
            job = _latest_job(item)
            if job is not None and not job.has_ended:
                raise ConflictError(
                    f"{item.name} is still being prepared; cancel its job first.", code="item-state"
                )
        _require_unused(item)
        asset, canvas, case, item_id = item.asset, item.canvas, item.case, item.pk
        item.delete()
        if canvas is not None:
            canvas.delete()
        case.uploads.filter(asset=asset).delete()
        asset_release(asset)
        transaction.on_commit(lambda: storage.folder_drop(storage.derived_folder(item_id)))
        if canvas is not None:
            cached = storage.cache_folder(canvas.pk)
            transaction.on_commit(lambda: storage.folder_drop(cached))


def _create(
    model: type[Slide] | type[Video], *, upload: Upload, user: User, name: str
) -> ItemReceived:
    require_edit(user, upload.lab_id)
    if upload.asset is None:
        raise ConflictError("This upload is not complete.", code="upload-incomplete")
    with transaction.atomic():
        item, is_new = model.objects.get_or_create(
            case_id=upload.case_id,
            asset=upload.asset,
            defaults={
                "lab_id": upload.lab_id,
                "name": name_clean(name or upload.filename),
                "created_by": user,
            },
        )
        if is_new:
            return ItemReceived(item, _submit(item, user=user), True)
    if item.state == ItemState.FAILED:
        return ItemReceived(item, item_retry(item=item, user=user), False)
    return ItemReceived(item, _latest_job(item), False)


def _submit(item: Slide | Video, *, user: User) -> Job:
    kind = item._meta.model_name
    return job_submit(
        kind=f"{kind}_ingest",
        args={f"{kind}_id": str(item.pk)},
        lab=item.lab,
        user=user,
        target=item,
        target_name=item.name,
    )


def _latest_job(item: CaseItem) -> Job | None:
    name = str(item._meta.model_name)
    return job_latest_for(target_type=name, target_ids=[item.pk]).get(item.pk)


def _require_unused(item: Slide | Video) -> None:
    """Refuse where the deletion would take rows of other apps along."""
    collector = Collector(using=item._state.db or "default")
    collector.collect([item])
    if item.canvas is not None:
        collector.collect([item.canvas])
    found: dict[str, int] = {}
    for model, rows in collector.data.items():
        _count(found, model, len(rows))
    for queryset in collector.fast_deletes:
        _count(found, queryset.model, queryset.count())
    if found:
        text = ", ".join(f"{count} {name}" for name, count in found.items())
        raise ConflictError(
            f"{item.name} cannot be deleted: it carries {text}.",
            code="item-in-use",
            details={"holds": found},
        )


def _count(found: dict[str, int], model: Any, count: int) -> None:
    if count and model not in (Slide, Video, Canvas):
        name = str(model._meta.verbose_name if count == 1 else model._meta.verbose_name_plural)
        found[name] = found.get(name, 0) + count
