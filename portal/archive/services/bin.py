"""The bin: what is deleted is hidden at once, and stays to be restored until it is purged.

One act of deletion is one ``BinEntry``. Higher apps hear ``bin.put``, ``bin.restored`` and
``bin.purging`` in the same transaction, and do the same with rows of their own.
"""

from __future__ import annotations

import uuid
from functools import partial

from django.db import IntegrityError, transaction

from portal.archive import storage
from portal.archive.models import (
    Asset,
    BinEntry,
    BinKind,
    Canvas,
    Case,
    CaseItem,
    Slide,
    Upload,
    Video,
)
from portal.archive.rules import require_edit, require_purge
from portal.archive.services.assets import asset_lock, asset_release
from portal.core.errors import ConflictError, NotFoundError
from portal.core.events import event_emit
from portal.labs.models import User

_MODELS = (Case, Slide, Video, Canvas)


def bin_put(*, item: Case | CaseItem, user: User | None) -> BinEntry:
    """Put a case or what it holds into the bin, with all that hangs on it; emits ``bin.put``.

    Args:
        user: None for the portal itself, which erases again what a backup brought back.
    Raises:
        NotFoundError: it is there already, or gone.
    """
    if user is not None:
        require_edit(user, item.lab_id)
    with transaction.atomic():
        found = type(item).objects.select_for_update().filter(pk=item.pk).first()
        if found is None:
            raise NotFoundError(f"{item} has already been deleted.")
        entry = BinEntry.objects.create(
            lab_id=found.lab_id,
            kind=str(found._meta.model_name),
            target_id=found.pk,
            name=str(found) if isinstance(found, Case) else found.name,
            case_id=found.pk if isinstance(found, Case) else _case_of(found),
            deleted_by=user,
        )
        type(item).objects.filter(pk=found.pk).update(bin_entry=entry)
        if isinstance(found, Case):
            for model in (Slide, Video, Canvas):
                model.objects.filter(case=found).update(bin_entry=entry)
        else:
            Canvas.objects.filter(pk__in=[found.canvas_id]).update(bin_entry=entry)
        _tell("bin.put", entry, user)
    return entry


def bin_restore(*, entry: BinEntry, user: User) -> None:
    """Bring back what one act of deletion took, and nothing else; emits ``bin.restored``.

    Raises:
        NotFoundError: it was restored or purged in the meantime.
        ConflictError: its case is in the bin, or something new has taken its place.
    """
    require_edit(user, entry.lab_id)
    try:
        with transaction.atomic():
            entry = _locked(entry)
            if entry.kind != BinKind.CASE and not Case.objects.filter(pk=entry.case_id).exists():
                raise ConflictError(
                    f"The case of {entry.name} is deleted as well: restore the case first.",
                    code="case-in-bin",
                )
            canvases = Canvas.everything.filter(bin_entry=entry).values_list("pk", flat=True)
            canvas_ids = [str(pk) for pk in canvases]
            for model in _MODELS:
                model.everything.filter(bin_entry=entry).update(bin_entry=None)
            _tell("bin.restored", entry, user, canvas_ids=canvas_ids)
            entry.delete()
    except IntegrityError:
        what = "accession number" if entry.kind == BinKind.CASE else "content"
        raise ConflictError(
            f"{entry.name} cannot be restored: something with the same {what} has been added "
            "since. Delete or change that first.",
            code="restore-taken",
        ) from None


def bin_purge(*, entry: BinEntry, user: User | None, erase: bool = False) -> None:
    """Delete for good what is in the bin, with its files; emits ``bin.purging`` and ``bin.purged``.

    Originals that something else uses stay; others go the way of ``asset_release``.

    Args:
        user: a manager; None for the portal itself, once the entry's days in the bin are over.
        erase: the originals do not wait in the trash but are deleted at once.
    Raises:
        NotFoundError: it was restored or purged in the meantime.
    """
    if user is not None:
        require_purge(user, entry.lab_id)
    with transaction.atomic():
        entry = _locked(entry)
        if entry.kind == BinKind.CASE:
            inner = BinEntry.objects.filter(case_id=entry.case_id).exclude(pk=entry.pk)
            for earlier in inner:
                bin_purge(entry=earlier, user=user, erase=erase)
        _tell("bin.purging", entry, user)
        originals: list[str] = []
        for model in (Slide, Video):
            for item in model.everything.filter(bin_entry=entry).select_related("asset", "canvas"):
                originals += _item_purge(item, erase=erase)
        for case in Case.everything.filter(bin_entry=entry):
            originals += _case_purge(case, erase=erase)
        # By this event an erasure finds what still waits in the trash.
        _tell("bin.purged", entry, user, originals=originals)
        entry.delete()


def _item_purge(item: Slide | Video, *, erase: bool) -> list[str]:
    """Delete the row, its canvas with all that lies on it, its transfers, and files on commit.

    Returns the SHA-256 of the original where nothing else names it.
    """
    asset, canvas, item_id = item.asset, item.canvas, item.pk
    asset_lock((item.lab_id, asset.sha256))
    _entries_drop_on_commit(item_id, *([canvas.pk] if canvas else []))
    item.delete()
    if canvas is not None:
        canvas.delete()
    twins = (model.everything.filter(case_id=item.case_id, asset=asset) for model in (Slide, Video))
    if not any(rows.exists() for rows in twins):
        Upload.objects.filter(case_id=item.case_id, asset=asset).delete()
    return [asset.sha256] if asset_release(asset, purge=erase) else []


def _case_purge(case: Case, *, erase: bool) -> list[str]:
    uploads = Upload.objects.filter(case=case)
    assets = list(Asset.objects.filter(uploads__in=uploads).distinct())
    asset_lock(*((asset.lab_id, asset.sha256) for asset in assets))
    _entries_drop_on_commit(case.pk, *uploads.values_list("pk", flat=True))
    case.delete()
    return [asset.sha256 for asset in assets if asset_release(asset, purge=erase)]


def _entries_drop_on_commit(*ids: uuid.UUID) -> None:
    """Delete what the storage holds under these ids, wherever it is."""
    transaction.on_commit(partial(storage.entries_drop, {str(pk) for pk in ids}))


def _case_of(item: CaseItem) -> uuid.UUID:
    """Every kind of item has a case; the base cannot say so, its ``related_name`` differs."""
    case_id: uuid.UUID = getattr(item, "case_id")  # noqa: B009
    return case_id


def _locked(entry: BinEntry) -> BinEntry:
    found = BinEntry.objects.select_for_update().filter(pk=entry.pk).first()
    if found is None:
        raise NotFoundError(f"{entry.name} is no longer in the bin.")
    return found


def _tell(name: str, entry: BinEntry, user: User | None, **more: list[str]) -> None:
    event_emit(
        name,
        lab_id=entry.lab_id,
        payload={
            "entry_id": str(entry.pk),
            "kind": str(entry.kind),
            "target_id": str(entry.target_id),
            "case_id": str(entry.case_id),
            "user_id": str(user.pk) if user else None,
            **more,
        },
    )
