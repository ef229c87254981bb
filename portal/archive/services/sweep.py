"""Housekeeping of the storage: what crashes and viewers leave behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from portal.archive import storage
from portal.archive.models import Asset, Upload
from portal.archive.services.uploads import upload_discard

OLDER_THAN = timedelta(hours=48)
CACHE_BYTES = 20 * 2**30  # decoded tiles of some hundred slides


@dataclass(frozen=True, slots=True)
class Swept:
    """How many things were deleted."""

    transfers: int
    scratch: int
    orphans: int
    cached: int


def storage_sweep(*, older_than: timedelta = OLDER_THAN, cache_bytes: int = CACHE_BYTES) -> Swept:
    """Delete what nobody needs. Safe beside a running portal: only what is old is touched.

    Args:
        older_than: age of transfers, scratch folders and assets without a row before they go.
        cache_bytes: decoded tiles and frames beyond this go, the longest unused first.
    """
    before_s = time.time() - older_than.total_seconds()
    return Swept(
        transfers=_transfers(before_s, older_than),
        scratch=_scratch(before_s),
        orphans=_orphans(before_s),
        cached=_cached(cache_bytes),
    )


def _transfers(before_s: float, older_than: timedelta) -> int:
    stale = Upload.objects.filter(asset=None, updated_at__lt=timezone.now() - older_than)
    uploads = list(stale)
    for upload in uploads:
        upload_discard(upload=upload)
    known = {str(pk) for pk in Upload.objects.filter(asset=None).values_list("pk", flat=True)}
    left = [
        path
        for path in _files(storage.root() / "incoming")
        if path.name not in known and path.stat().st_ctime < before_s
    ]
    return len(uploads) + _unlink(left)


def _scratch(before_s: float) -> int:
    parent = storage.root() / "scratch"
    folders = list(parent.iterdir()) if parent.is_dir() else []
    old = [path for path in folders if path.is_dir() and path.stat().st_ctime < before_s]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    return len(old)


def _orphans(before_s: float) -> int:
    """Asset files without a row: bytes are stored before rows, and a crash may come between."""
    old = [path for path in _files(storage.root() / "assets") if path.stat().st_ctime < before_s]
    known = {
        storage.asset_path(lab_id, sha256)
        for lab_id, sha256 in Asset.objects.values_list("lab_id", "sha256").iterator()
    }
    return _unlink(path for path in old if path not in known)


def _cached(cache_bytes: int) -> int:
    entries = [(path.stat(), path) for path in _files(storage.root() / "cache")]
    entries.sort(key=lambda entry: max(entry[0].st_atime, entry[0].st_mtime), reverse=True)
    held, surplus = 0, []
    for stat, path in entries:
        held += stat.st_size
        if held > cache_bytes:
            surplus.append(path)
    return _unlink(surplus)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []


def _unlink(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        path.unlink(missing_ok=True)
        count += 1
    return count
