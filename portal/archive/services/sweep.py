"""Housekeeping of the storage: what crashes and viewers leave behind.

Nothing here trusts the database blindly. Originals that no row names are moved to the orphan
folder, not deleted; only a few at a time, since many of them mean that the database is wrong rather
than the files; and never where the files belong to another database.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from portal.archive.models import Asset, Upload, UploadState
from portal.archive.rules import RETENTION
from portal.archive.services.assets import asset_orphan, asset_restore
from portal.archive.services.identity import identity_problem
from portal.archive.services.transfers.arriving import upload_discard
from portal.archive.storage.files import ASSETS, asset_name, asset_of, the_store
from portal.archive.storage.orphans import orphan_list, orphan_put, orphans_expire
from portal.core.storage_layout import Place

logger = logging.getLogger(__name__)

CACHE_BYTES = 20 * 2**30  # decoded tiles of some hundred slides
MAX_ORPHAN_FILES = 20  # crashes leave a few; many mean that the database is wrong
MAX_ORPHAN_SHARE = 0.01  # of all files, where that is fewer: a small archive has few crashes


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Numbers of removed files, and the reason if a removal was refused.

    Attributes:
        orphans: Originals without a row, moved to the orphan folder.
        restored: Missing originals with a row, brought back from the orphan folder.
        copies: Local copies of originals that are no longer in the object storage.
        expired: Files deleted from the orphan folder after its retention.
        refused: Why originals without a row were not moved; empty if they were.
    """

    transfers: int = 0
    scratch: int = 0
    orphans: int = 0
    cached: int = 0
    restored: int = 0
    copies: int = 0
    expired: int = 0
    refused: str = ""


def storage_sweep(
    *,
    older_than: timedelta = RETENTION,
    cache_bytes: int = CACHE_BYTES,
    many_orphans: bool = False,
    dry_run: bool = False,
) -> SweepResult:
    """Delete unused files. Safe while the portal runs: only old files are touched.

    Args:
        older_than: Minimum age of the uploads, scratch folders and assets without a row to remove.
        cache_bytes: Size that the cache of tiles and frames is reduced to, least recently used
            first.
        many_orphans: Move originals without a row to the orphan folder however many there are. By
            default none is moved if they are more than 1 % of all or more than 20. For an
            administrator who has checked them.
        dry_run: Count only; nothing is changed.
    """
    before_s = time.time() - older_than.total_seconds()
    scratch, cached = _scratch(before_s, dry_run), _shrink_cache(cache_bytes, dry_run)
    problem = identity_problem()
    if problem:
        return _log_refusal(
            SweepResult(scratch=scratch, cached=cached, refused=f"{problem} {_ADVICE}")
        )
    orphans, refused = _orphans(before_s, many_orphans, dry_run)
    restored = _restore_originals(dry_run)  # before the orphan folder is emptied
    return _log_refusal(
        SweepResult(
            transfers=_transfers(before_s, older_than, dry_run),
            scratch=scratch,
            orphans=orphans,
            cached=cached,
            restored=restored,
            copies=0 if dry_run else the_store().tidy(),
            expired=orphans_expire(days=settings.TESSERA_ORPHAN_DAYS, dry_run=dry_run),
            refused=refused,
        )
    )


_ADVICE = (
    "Nothing that depends on the database was swept. Check TESSERA_DATABASE_URL and "
    "TESSERA_STORAGE. If the two do belong together, confirm it with 'archive_sweep --adopt'."
)


def _log_refusal(swept: SweepResult) -> SweepResult:
    if swept.refused:
        logger.error("storage sweep: %s", swept.refused)
    return swept


def _transfers(before_s: float, older_than: timedelta, dry_run: bool) -> int:
    stale = Upload.objects.filter(asset=None, updated_at__lt=timezone.now() - older_than)
    uploads = list(stale.exclude(state=UploadState.CHECKING).filter(joined_upload=None))
    if not dry_run:
        for upload in uploads:
            upload_discard(upload=upload)
    upload_ids = {str(pk) for pk in Upload.objects.filter(asset=None).values_list("pk", flat=True)}
    left = [
        path
        for path in _files(Place.INCOMING.folder)
        if path.name not in upload_ids and path.stat().st_ctime < before_s
    ]
    return len(uploads) + _unlink(left, dry_run)


def _scratch(before_s: float, dry_run: bool) -> int:
    parent = Place.JOBS.folder  # the folder of all running jobs
    folders = list(parent.iterdir()) if parent.is_dir() else []
    old = [path for path in folders if path.is_dir() and path.stat().st_ctime < before_s]
    for folder in old if not dry_run else ():
        shutil.rmtree(folder, ignore_errors=True)
    return len(old)


def _orphans(before_s: float, many_orphans: bool, dry_run: bool) -> tuple[int, str]:
    """Asset files without a row: bytes are stored before rows, and a crash may come between."""
    files = list(the_store().files(ASSETS))
    names = {
        asset_name(lab_id, sha256)
        for lab_id, sha256 in Asset.objects.values_list("lab_id", "sha256").iterator()
    }
    unknown = [file.name for file in files if file.name not in names and file.changed_s < before_s]
    max_count = max_orphans(len(files))
    if unknown and not names and not many_orphans:
        return 0, (
            f"The database has no files at all, but the storage holds {len(files)}. Was the "
            "database emptied, or is it another one? Nothing was moved; --many-orphans moves them."
        )
    if len(unknown) > max_count and not many_orphans:
        return 0, (
            f"{len(unknown)} of {len(files)} originals have no row in the database; at most "
            f"{max_count} are moved at a time. Was an older database restored? Nothing was "
            "moved. Check first; --many-orphans then moves them to the orphan folder."
        )
    return sum(dry_run or _orphan(name) for name in unknown), ""


def max_orphans(file_count: int) -> int:
    """Largest number of originals without a row that a sweep moves: 1 % of all, from 1 to 20."""
    return min(MAX_ORPHAN_FILES, max(1, int(file_count * MAX_ORPHAN_SHARE)))


def _orphan(name: str) -> bool:
    """Move an asset to the orphan folder, under its lock unless its name is not one of ours."""
    asset = asset_of(name)
    if asset is None:
        orphan_put(name)
        return True
    return asset_orphan(lab_id=asset[0], sha256=asset[1])


def _restore_originals(dry_run: bool) -> int:
    """Originals in the orphan folder that a row names, and that are missing where they belong."""
    orphan_homes = {item.home for item in orphan_list()}
    if not orphan_homes:
        return 0
    pairs = (
        (lab_id, sha256)
        for lab_id, sha256 in Asset.objects.values_list("lab_id", "sha256").iterator()
        if asset_name(lab_id, sha256) in orphan_homes
    )
    store = the_store()
    missing = [pair for pair in pairs if not store.stat(asset_name(*pair))]
    return sum(dry_run or asset_restore(lab_id=lab, sha256=sha256) for lab, sha256 in missing)


def _shrink_cache(cache_bytes: int, dry_run: bool) -> int:
    entries = [(path.stat(), path) for path in _files(Place.CACHE.folder)]
    entries.sort(key=lambda entry: max(entry[0].st_atime, entry[0].st_mtime), reverse=True)
    total_bytes, surplus = 0, []
    for stat, path in entries:
        total_bytes += stat.st_size
        if total_bytes > cache_bytes:
            surplus.append(path)
    return _unlink(surplus, dry_run)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []


def _unlink(paths: Iterable[Path], dry_run: bool) -> int:
    count = 0
    for path in paths:
        if not dry_run:
            path.unlink(missing_ok=True)
        count += 1
    return count
