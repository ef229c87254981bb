"""Files of the storage that a backup includes; those that can be made again are left out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from portal.archive.models import Asset, Canvas, Video
from portal.archive.storage import files as storage
from portal.backups.dumps import Query
from portal.core.storage_layout import Place, root

LEFT_OUT = frozenset(place.folder_name for place in Place if not place.is_backed_up)


@dataclass(frozen=True, slots=True)
class BackupFile:
    """File to copy; hash and size are known for originals."""

    path: str
    sha256: str = ""
    size_bytes: int = 0


def originals_of(query: Query) -> list[BackupFile]:
    """Originals that rows of the dump refer to."""
    rows = query(f"SELECT lab_id, sha256, size_bytes FROM {Asset._meta.db_table}")  # noqa: S608
    return [
        BackupFile(storage.asset_name(uuid.UUID(str(lab)), sha256), sha256, size)
        for lab, sha256, size in rows
    ]


def paths_of(query: Query) -> set[str]:
    """Paths of derived files that rows of the dump refer to."""
    canvases = f"SELECT pixels_path, thumbnail_path FROM {Canvas._meta.db_table}"  # noqa: S608
    videos = f"SELECT frames_path, media_path FROM {Video._meta.db_table}"  # noqa: S608
    return {path for row in [*query(canvases), *query(videos)] for path in row if path}


def other_files() -> Iterator[BackupFile]:
    """List the other files to include, also those that no ``Place`` declares."""
    top = root()
    for entry in sorted(top.iterdir()) if top.is_dir() else ():
        if entry.name in LEFT_OUT or entry.name == storage.ASSETS:
            continue
        for path in [entry] if entry.is_file() else sorted(entry.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield BackupFile(storage.relative(path))
