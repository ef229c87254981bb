"""Build cache: finished stages, so that a stopped or a longer build can resume.

A folder below ``scratch`` of the storage, shared by the mosaics of a video that differ only in
their
end: of a longer span, only the new frames are surveyed and registered. Folders unused for two days
are removed. The preview of a running build is there too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.core.storage_layout import Place
from portal.mosaics.models import Mosaic
from portal.mosaics.options import options_hash

PREVIEW_NAME = "growing.jpg"
"""File name that ``ml.mosaic`` gives the preview of a running build."""


def build_cache_folder(mosaic: Mosaic) -> Path:
    """Folder shared by mosaics that differ only in their end; it may not exist."""
    alike = {name: value for name, value in mosaic.config.items() if name != "end_s"}
    family = uuid.uuid5(mosaic.video_id, options_hash(alike))
    return Place.MOSAIC_BUILDS.path(mosaic.video_id, family)


def build_cache_stages(mosaic: Mosaic) -> Path:
    """The finished stages in it."""
    return build_cache_folder(mosaic) / "stages"


def build_cache_preview(mosaic: Mosaic) -> Path:
    """Path of the preview (a small JPEG) of a running build; it may not exist."""
    return build_cache_stages(mosaic) / PREVIEW_NAME


def build_cache_exists(mosaic: Mosaic) -> bool:
    """Return whether an earlier build left stages to resume from."""
    folder = build_cache_stages(mosaic)
    return folder.is_dir() and any(folder.iterdir())


@contextmanager
def build_cache_claim(mosaic: Mosaic) -> Iterator[Path | None]:
    """Lock the folder of stages; yields None if another process has locked it.

    A paused worker whose job was taken over may still write to the folder; the new worker then runs
    without finished stages.
    """
    folder = build_cache_folder(mosaic)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)  # its two days start again
    handle = _try_lock(folder)
    if handle is None:
        yield None
        return
    try:
        yield build_cache_stages(mosaic)
    finally:
        os.close(handle)


def build_cache_drop(mosaic: Mosaic) -> None:
    """Delete the cached stages, unless a worker uses them; the sweep deletes those later."""
    folder = build_cache_folder(mosaic)
    handle = _try_lock(folder) if folder.is_dir() else None
    if handle is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _try_lock(folder: Path) -> int | None:
    """The folder's lock, to be closed; None if another has it."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
