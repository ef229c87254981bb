"""The build cache: finished stages, so that a stopped build, or a longer one, can resume.

A folder below ``scratch`` of the storage, shared by the mosaics of a video that differ in their end
alone: of a longer span only the new frames are surveyed and registered. What nobody continued with
for two days is swept. The growing preview lies in it too.
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
"""As ``ml.mosaic`` writes it among the stages of a build under way."""


def build_cache_folder(mosaic: Mosaic) -> Path:
    """The folder of a mosaic and of those that differ in their end alone; it may not be there."""
    alike = {name: value for name, value in mosaic.config.items() if name != "end_s"}
    family = uuid.uuid5(mosaic.video_id, options_hash(alike))
    return Place.MOSAIC_BUILDS.path(mosaic.video_id, family)


def build_cache_stages(mosaic: Mosaic) -> Path:
    """The finished stages in it."""
    return build_cache_folder(mosaic) / "stages"


def build_cache_preview(mosaic: Mosaic) -> Path:
    """What has been stitched so far, as a small JPEG; it may not be there."""
    return build_cache_stages(mosaic) / PREVIEW_NAME


def build_cache_exists(mosaic: Mosaic) -> bool:
    """Whether an earlier build left stages to resume from."""
    folder = build_cache_stages(mosaic)
    return folder.is_dir() and any(folder.iterdir())


@contextmanager
def build_cache_claim(mosaic: Mosaic) -> Iterator[Path | None]:
    """The folder of stages for this process alone, or None if another one holds it.

    A worker that was paused, and whose job another one took over, may still write there: then the
    other works without finished stages.
    """
    folder = build_cache_folder(mosaic)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)  # its two days start again
    handle = _locked(folder)
    if handle is None:
        yield None
        return
    try:
        yield build_cache_stages(mosaic)
    finally:
        os.close(handle)


def build_cache_drop(mosaic: Mosaic) -> None:
    """Forget the stages, unless a worker uses them: what it leaves is swept."""
    folder = build_cache_folder(mosaic)
    handle = _locked(folder) if folder.is_dir() else None
    if handle is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked(folder: Path) -> int | None:
    """The folder's lock, to be closed; None if another has it."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
