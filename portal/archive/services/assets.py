"""Assets: bytes and row are created and deleted together, under one lock per content hash.

The lock is held while a file is placed, referenced by a row, or dropped. Without it an upload could
find bytes in place that a deletion, committed a moment before, was about to remove.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.db import DatabaseError, transaction

from portal.archive.models import Asset, Slide, Upload, Video
from portal.archive.storage.files import asset_name, the_store
from portal.archive.storage.orphans import OrphanFile, orphan_find, orphan_put, orphan_restore
from portal.core.database.locks import transaction_lock

logger = logging.getLogger(__name__)


def asset_lock(*assets: tuple[uuid.UUID, str]) -> None:
    """Take the locks of contents (lab and SHA-256) until the transaction ends."""
    transaction_lock(*(_lock_name(lab_id, sha256) for lab_id, sha256 in assets))


@contextmanager
def asset_placing(lab_id: uuid.UUID, sha256: str, *, received: Path | None) -> Iterator[None]:
    """A transaction that holds the lock of a content: place its bytes and write its rows inside.

    Where the store is slow, the bytes are sent to it before the locks are taken. Where the block
    fails, no row is written, and bytes that were placed are deleted at once.

    Args:
        received: None if the store has the bytes already.
    """
    with assets_placing(lab_id, {sha256: received}):
        yield


@contextmanager
def assets_placing(lab_id: uuid.UUID, received: Mapping[str, Path | None]) -> Iterator[None]:
    """``asset_placing`` for several contents of a lab at once, by their SHA-256."""
    store, new = the_store(), []
    for sha256 in received:
        if store.stat(asset_name(lab_id, sha256)) is None:
            new.append(sha256)
    try:
        for sha256, path in received.items():
            if path is not None:
                store.send(path, asset_name(lab_id, sha256))
        with transaction.atomic():
            # The lab's lock as well, so that two uploads cannot both use the last of its quota.
            names = [_lock_name(lab_id, sha256) for sha256 in received]
            transaction_lock(f"lab {lab_id}", *names)
            yield
    except BaseException:
        for sha256 in new:
            _withdraw(lab_id, sha256)
        raise


def asset_release(asset: Asset, *, purge: bool = False) -> bool:
    """Delete an asset's row if nothing names it any more. Call inside a transaction.

    On commit its bytes go to the orphan folder, from which they can be restored for
    ``TESSERA_ORPHAN_DAYS`` days.

    Args:
        purge: delete the bytes for good instead, with their copies in the orphan folder.
    Returns:
        Whether the row was deleted.
    """
    lab_id, sha256 = asset.lab_id, asset.sha256
    asset_lock((lab_id, sha256))
    holders = (Slide.all_objects, Video.all_objects, Upload.objects)  # those in the trash as well
    if any(rows.filter(asset=asset).exists() for rows in holders):
        return False
    asset.delete()
    drop = asset_purge if purge else asset_orphan
    # The sweep takes what a failure leaves. No partial: Django logs a failure by the name.
    transaction.on_commit(lambda: drop(lab_id=lab_id, sha256=sha256), robust=True)
    return True


def asset_orphan(*, lab_id: uuid.UUID, sha256: str) -> bool:
    """Move the bytes of a content to the orphan folder; False if a row names them."""
    with transaction.atomic():
        asset_lock((lab_id, sha256))
        name = asset_name(lab_id, sha256)
        if _is_named(lab_id, sha256) or not the_store().stat(name):
            return False
        orphan_put(name)
    return True


def asset_purge(*, lab_id: uuid.UUID, sha256: str) -> int:
    """Delete the bytes of a content and its orphans for good, unless a row names them.

    Returns:
        How many files were deleted; 0 if a row names them (erase the rows first).
    """
    with transaction.atomic():
        asset_lock((lab_id, sha256))
        if _is_named(lab_id, sha256):
            return 0
        names = [asset_name(lab_id, sha256)]
        names += [item.name for item in orphan_find(lab_id, sha256)]
        return sum(the_store().delete(name) for name in names)


def asset_restore(*, lab_id: uuid.UUID, sha256: str) -> bool:
    """Bring the bytes of a content back from the orphan folder; False if it holds none."""
    with transaction.atomic():
        asset_lock((lab_id, sha256))
        orphans = orphan_find(lab_id, sha256)
        if orphans:
            orphan_restore(orphans[0])
    return bool(orphans)


def orphan_purge(item: OrphanFile, *, lab_id: uuid.UUID, sha256: str) -> bool:
    """Delete an orphan for good, unless it is the only copy of what a row names."""
    with transaction.atomic():
        asset_lock((lab_id, sha256))
        if _is_named(lab_id, sha256) and not the_store().stat(item.home):
            return False
        the_store().delete(item.name)
    return True


def _lock_name(lab_id: uuid.UUID, sha256: str) -> str:
    return f"asset {lab_id} {sha256}"


def _is_named(lab_id: uuid.UUID, sha256: str) -> bool:
    return Asset.objects.filter(lab_id=lab_id, sha256=sha256).exists()


def _withdraw(lab_id: uuid.UUID, sha256: str) -> None:
    """Delete bytes that were placed for rows that were not written."""
    try:
        with transaction.atomic():
            asset_lock((lab_id, sha256))
            if not _is_named(lab_id, sha256):
                the_store().delete(asset_name(lab_id, sha256))
    except (DatabaseError, OSError):
        logger.exception("asset %s was left without a row; the sweep will remove it", sha256)
