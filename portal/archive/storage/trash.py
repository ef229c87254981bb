"""The trash of the storage: originals that no row names any more wait here before they go.

::

    <root>/trash/<day>/assets/<lab>/<sha[:2]>/<sha>

A file is moved, never copied, and keeps its place below the day on which it was moved.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from django.utils import timezone

from ml.files import sync_folder
from portal.archive.storage.files import asset_path, relative, root


@dataclass(frozen=True, slots=True)
class Trashed:
    """A file in the trash.

    Attributes:
        day: on which it was moved here.
        home: where it lay, and goes back to.
    """

    path: Path
    day: date
    home: Path


def trash_put(path: Path) -> Path:
    """Move a file of the storage to the trash of today; returns where it lies now."""
    target = root() / "trash" / timezone.now().date().isoformat() / relative(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    path.replace(target)
    sync_folder(target.parent)
    sync_folder(path.parent)
    return target


def trash_list() -> Iterator[Trashed]:
    """Every file in the trash, the oldest day first."""
    for day, folder in _days():
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield Trashed(path, day, root() / path.relative_to(folder))


def trash_find(lab_id: uuid.UUID, sha256: str) -> list[Trashed]:
    """The copies of an asset in the trash, the newest first."""
    home = asset_path(lab_id, sha256)
    found = [Trashed(folder / relative(home), day, home) for day, folder in _days()]
    return [item for item in reversed(found) if item.path.is_file()]


def trash_restore(item: Trashed) -> None:
    """Move a file back to where it lay. What lies there already stays: it has the same bytes."""
    item.home.parent.mkdir(parents=True, exist_ok=True)
    if item.home.exists():
        item.path.unlink(missing_ok=True)
        return
    item.path.replace(item.home)
    sync_folder(item.home.parent)


def trash_expire(*, days: float, dry_run: bool = False) -> int:
    """Delete what has been in the trash for more than ``days``; returns how many files went."""
    last = timezone.now().date() - timedelta(days=days)
    count = 0
    for day, folder in _days():
        if day < last:
            count += sum(len(files) for _, _, files in os.walk(folder))
            if not dry_run:
                shutil.rmtree(folder, ignore_errors=True)
    return count


def _days() -> list[tuple[date, Path]]:
    parent = root() / "trash"
    found = []
    for folder in parent.iterdir() if parent.is_dir() else ():
        try:
            found.append((date.fromisoformat(folder.name), folder))
        except ValueError:
            continue  # not made by us
    return sorted(found)
