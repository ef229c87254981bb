"""Which files of the storage a backup takes, and which it leaves because they can be made again.

What no place declares is taken: somebody put it there.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.archive import storage
from portal.archive.models import Asset, Canvas, Video
from portal.core.storage_layout import Place, root
from portal.keeping.dumps import Query

LEFT_OUT = frozenset(place.folder_name for place in Place if not place.is_backed_up)
"""Cached, copied from a bucket, half received (sent again), derived from rows, at work, deleted;
and room that is only held."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file to copy; ``sha256`` where its name tells it."""

    path: str
    sha256: str = ""
    size_bytes: int = 0


def assets_of(ask: Query) -> list[WantedFile]:
    """The originals that the rows of the dump name."""
    rows = ask(f"SELECT lab_id, sha256, size_bytes FROM {Asset._meta.db_table}")  # noqa: S608
    return [
        WantedFile(storage.asset_name(uuid.UUID(str(lab)), sha256), sha256, size)
        for lab, sha256, size in rows
    ]


def paths_of(ask: Query) -> set[str]:
    """Paths that the rows of the dump name: each has to be in the backup."""
    canvases = f"SELECT pixels_path, thumbnail_path FROM {Canvas._meta.db_table}"  # noqa: S608
    videos = f"SELECT frames_path, media_path FROM {Video._meta.db_table}"  # noqa: S608
    return {path for row in [*ask(canvases), *ask(videos)] for path in row if path}


def others() -> Iterator[WantedFile]:
    """Every other file worth keeping, by what lies there now."""
    top = root()
    for room in sorted(top.iterdir()) if top.is_dir() else ():
        if room.name in LEFT_OUT or room.name == storage.ASSETS:
            continue
        for path in [room] if room.is_file() else sorted(room.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield WantedFile(storage.relative(path))


def is_plain(path: str) -> bool:
    """Whether a path of a manifest stays below the storage's root."""
    parts = Path(path).parts
    return bool(parts) and not Path(path).is_absolute() and ".." not in parts
