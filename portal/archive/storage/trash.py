"""The trash of the storage: originals that no row names any more wait here before they go.

::

    trash/<day>/assets/<lab>/<sha[:2]>/<sha>

A file is moved within its store, and keeps its name below the day on which it was moved.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils import timezone

from portal.archive.storage.files import asset_name, the_store
from portal.core.storage_layout import Place

TRASH = Place.TRASH.folder_name


@dataclass(frozen=True, slots=True)
class Trashed:
    """A file in the trash.

    Attributes:
        day: on which it was moved here.
        home: its name before, to which it goes back.
    """

    name: str
    day: date
    home: str
    size_bytes: int


def trash_put(name: str) -> None:
    """Move a file of the store to the trash of today."""
    the_store().move(name, f"{TRASH}/{timezone.now().date().isoformat()}/{name}")


def trash_list() -> Iterator[Trashed]:
    """Every file in the trash, the oldest day first."""
    for day, folder in _days():
        for stored in the_store().files(folder):
            home = stored.name.removeprefix(f"{folder}/")
            yield Trashed(stored.name, day, home, stored.size_bytes)


def trash_find(lab_id: uuid.UUID, sha256: str) -> list[Trashed]:
    """The copies of an asset in the trash, the newest first."""
    home = asset_name(lab_id, sha256)
    found = []
    for day, folder in reversed(_days()):
        if stored := the_store().stat(f"{folder}/{home}"):
            found.append(Trashed(stored.name, day, home, stored.size_bytes))
    return found


def trash_restore(item: Trashed) -> None:
    """Move a file back to where it lay. What lies there already stays: it has the same bytes."""
    if the_store().stat(item.home):
        the_store().delete(item.name)
    else:
        the_store().move(item.name, item.home)


def trash_expire(*, days: float, dry_run: bool = False) -> int:
    """Delete what has been in the trash for more than ``days``; returns how many files went."""
    last = timezone.now().date() - timedelta(days=days)
    count = 0
    for day, folder in _days():
        if day < last:
            count += sum(1 for _ in the_store().files(folder))
            if not dry_run:
                the_store().delete_folder(folder)
    return count


def _days() -> list[tuple[date, str]]:
    found = []
    for name in the_store().folders(TRASH):
        try:
            found.append((date.fromisoformat(name), f"{TRASH}/{name}"))
        except ValueError:
            continue  # not made by us
    return sorted(found)
