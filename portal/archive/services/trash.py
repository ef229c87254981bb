"""Deletion into the trash, restoration, and deletion for good.

Each deletion is one ``TrashEntry``. Other apps subscribe to ``trash.put``, ``trash.restored`` and
``trash.purging`` and treat their rows accordingly in the same transaction.
"""

from __future__ import annotations

import uuid
from functools import partial

from django.db import IntegrityError, transaction

from portal.archive.events import ArchiveEvent
from portal.archive.models import (
    Asset,
    Canvas,
    Case,
    CaseItem,
    Slide,
    TrashEntry,
    TrashKind,
    Upload,
    Video,
)
from portal.archive.rules import require_edit, require_purge
from portal.archive.selectors.trash import purge_before
from portal.archive.services.assets import asset_lock, asset_release
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, NotFoundError
from portal.core.events import event_emit
from portal.labs.models import User

_MODELS = (Case, Slide, Video, Canvas)


def trash_put(*, item: Case | CaseItem, user: User | None) -> TrashEntry:
    """Put a case or an item into the trash, with everything on it. Emits ``trash.put``.

    Args:
        user: None for the portal itself, which erases again what a backup brought back.
    Raises:
        NotFoundError: it is there already, or gone.
    """
    if user is not None:
        require_edit(user, item.lab_id)
    with transaction.atomic():
        locked = type(item).objects.select_for_update().filter(pk=item.pk).first()
        if locked is None:
            raise NotFoundError(f"{item} has already been deleted.")
        entry = TrashEntry.objects.create(
            lab_id=locked.lab_id,
            kind=str(locked._meta.model_name),
            target_id=locked.pk,
            name=str(locked) if isinstance(locked, Case) else locked.name,
            case_id=locked.pk if isinstance(locked, Case) else _case_of(locked),
            deleted_by=user,
        )
        type(item).objects.filter(pk=locked.pk).update(trash_entry=entry)
        if isinstance(locked, Case):
            for model in (Slide, Video, Canvas):
                model.objects.filter(case=locked).update(trash_entry=entry)
        else:
            Canvas.objects.filter(pk__in=[locked.canvas_id]).update(trash_entry=entry)
        _tell(ArchiveEvent.TRASH_PUT, entry, user)
    return entry


def trash_restore(*, entry: TrashEntry, user: User) -> None:
    """Restore the objects that were deleted with an entry. Emits ``trash.restored``.

    Raises:
        NotFoundError: it was restored or purged in the meantime.
        ConflictError: its case is in the trash, or something new has taken its place.
    """
    require_edit(user, entry.lab_id)
    try:
        with transaction.atomic():
            entry = _lock_entry(entry)
            if entry.kind != TrashKind.CASE and not Case.objects.filter(pk=entry.case_id).exists():
                raise ConflictError(
                    f"The case of {entry.name} is deleted as well: restore the case first.",
                    code="case-in-trash",
                )
            canvases = Canvas.all_objects.filter(trash_entry=entry).values_list("pk", flat=True)
            canvas_ids = [str(pk) for pk in canvases]
            for model in _MODELS:
                model.all_objects.filter(trash_entry=entry).update(trash_entry=None)
            _tell(ArchiveEvent.TRASH_RESTORED, entry, user, canvas_ids=canvas_ids)
            entry.delete()
    except IntegrityError:
        field = "accession number" if entry.kind == TrashKind.CASE else "content"
        raise ConflictError(
            f"{entry.name} cannot be restored: something with the same {field} has been added "
            "since. Delete or change that first.",
            code="restore-taken",
        ) from None


def trash_purge(*, entry: TrashEntry, user: User | None, erase: bool = False) -> None:
    """Delete for good what is in the trash, with its files.

    Emits ``trash.purging`` and ``trash.purged``. Originals that something else uses stay; others
    are released, see ``asset_release``.

    Args:
        user: a manager; None for the portal itself, once the entry's days in the trash are over.
        erase: the originals do not wait in the orphan folder but are deleted at once.
    Raises:
        NotFoundError: it was restored or purged in the meantime.
    """
    if user is not None:
        require_purge(user, entry.lab_id)
    with transaction.atomic():
        entry = _lock_entry(entry)
        if entry.kind == TrashKind.CASE:
            inner = TrashEntry.objects.filter(case_id=entry.case_id).exclude(pk=entry.pk)
            for earlier in inner:
                trash_purge(entry=earlier, user=user, erase=erase)
        _tell(ArchiveEvent.TRASH_PURGING, entry, user)
        originals: list[str] = []
        for model in (Slide, Video):
            for item in model.all_objects.filter(trash_entry=entry).select_related(
                "asset", "canvas"
            ):
                originals += _item_purge(item, erase=erase)
        for case in Case.all_objects.filter(trash_entry=entry):
            originals += _case_purge(case, erase=erase)
        # An erasure finds the files in the orphan folder by this event.
        _tell("trash.purged", entry, user, originals=originals)
        entry.delete()


def trash_purge_due() -> int:
    """Purge the entries that have been in the trash for more than ``TESSERA_TRASH_DAYS``.

    Returns their number. Two processes may run it at once.
    """
    count = 0
    for entry in TrashEntry.objects.filter(created_at__lt=purge_before()).order_by("created_at"):
        try:
            trash_purge(entry=entry, user=None)
        except NotFoundError:
            continue  # restored in the meantime, or deleted with its case
        count += 1
    return count


def _item_purge(item: Slide | Video, *, erase: bool) -> list[str]:
    """Delete the row, its canvas with everything on it, its uploads, and files on commit.

    Returns the SHA-256 of the original if nothing else refers to it.
    """
    asset, canvas, item_id = item.asset, item.canvas, item.pk
    asset_lock((item.lab_id, asset.sha256))
    _entries_drop_on_commit(item_id, *([canvas.pk] if canvas else []))
    item.delete()
    if canvas is not None:
        canvas.delete()
    other_items = (
        model.all_objects.filter(case_id=item.case_id, asset=asset) for model in (Slide, Video)
    )
    originals: list[Asset] = []
    if not any(rows.exists() for rows in other_items):
        uploads = Upload.objects.filter(case_id=item.case_id, asset=asset)
        withheld = Upload.objects.filter(redacted__upload__in=uploads)
        originals = list(Asset.objects.filter(uploads__in=withheld).distinct())
        withheld.delete()
        uploads.delete()
    purged = [original.sha256 for original in originals if asset_release(original, purge=True)]
    return purged + ([asset.sha256] if asset_release(asset, purge=erase) else [])


def _case_purge(case: Case, *, erase: bool) -> list[str]:
    uploads = Upload.objects.filter(case=case)
    assets = list(Asset.objects.filter(uploads__in=uploads).distinct())
    asset_lock(*((asset.lab_id, asset.sha256) for asset in assets))
    _entries_drop_on_commit(case.pk, *uploads.values_list("pk", flat=True))
    case.delete()
    return [asset.sha256 for asset in assets if asset_release(asset, purge=erase)]


def _entries_drop_on_commit(*ids: uuid.UUID) -> None:
    """Delete the storage entries of these ids after the commit."""
    transaction.on_commit(partial(storage.entries_drop, {str(pk) for pk in ids}))


def _case_of(item: CaseItem) -> uuid.UUID:
    """Case of an item; the base class has no such field, as its ``related_name`` differs."""
    case_id: uuid.UUID = getattr(item, "case_id")  # noqa: B009
    return case_id


def _lock_entry(entry: TrashEntry) -> TrashEntry:
    locked = TrashEntry.objects.select_for_update().filter(pk=entry.pk).first()
    if locked is None:
        raise NotFoundError(f"{entry.name} is no longer in the trash.")
    return locked


def _tell(name: str, entry: TrashEntry, user: User | None, **extra: list[str]) -> None:
    event_emit(
        name,
        lab_id=entry.lab_id,
        payload={
            "entry_id": str(entry.pk),
            "kind": str(entry.kind),
            "target_id": str(entry.target_id),
            "case_id": str(entry.case_id),
            "user_id": str(user.pk) if user else None,
            **extra,
        },
    )
