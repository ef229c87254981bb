"""Originals without a row, kept for ``TESSERA_ORPHAN_DAYS`` before they are deleted.

::

    orphans/<day>/assets/<lab>/<sha[:2]>/<sha>

A file is moved within its store and keeps its name below the day on which it was moved.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils import timezone

from portal.archive.storage.files import asset_name, the_store
from portal.core.storage_layout import Place

ORPHANS = Place.ORPHANS.folder_name


@dataclass(frozen=True, slots=True)
class OrphanFile:
    """A file in the orphan folder.

    Attributes:
        day: on which it was moved here.
        home: its name before, to which it goes back.
    """

    name: str
    day: date
    home: str
    size_bytes: int


def orphan_put(name: str) -> None:
    """Move a file of the store to today's orphan folder."""
    the_store().move(name, f"{ORPHANS}/{timezone.now().date().isoformat()}/{name}")


def orphan_list() -> Iterator[OrphanFile]:
    """All orphans, from the oldest day on."""
    for day, folder in _days():
        for stored in the_store().files(folder):
            home = stored.name.removeprefix(f"{folder}/")
            yield OrphanFile(stored.name, day, home, stored.size_bytes)


def orphan_find(lab_id: uuid.UUID, sha256: str) -> list[OrphanFile]:
    """Orphaned copies of an asset, the newest first."""
    home = asset_name(lab_id, sha256)
    orphans = []
    for day, folder in reversed(_days()):
        if stored := the_store().stat(f"{folder}/{home}"):
            orphans.append(OrphanFile(stored.name, day, home, stored.size_bytes))
    return orphans


def orphan_restore(item: OrphanFile) -> None:
    """Move a file back to its original path. An existing file there stays: it has the same
    bytes."""
    if the_store().stat(item.home):
        the_store().delete(item.name)
    else:
        the_store().move(item.name, item.home)


def orphans_expire(*, days: float, dry_run: bool = False) -> int:
    """Delete orphans older than ``days``; return the number of files."""
    last = timezone.now().date() - timedelta(days=days)
    count = 0
    for day, folder in _days():
        if day < last:
            count += sum(1 for _ in the_store().files(folder))
            if not dry_run:
                the_store().delete_folder(folder)
    return count


def _days() -> list[tuple[date, str]]:
    days = []
    for name in the_store().folders(ORPHANS):
        try:
            days.append((date.fromisoformat(name), f"{ORPHANS}/{name}"))
        except ValueError:
            continue  # not made by us
    return sorted(days)
