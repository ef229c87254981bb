"""Where a build keeps its finished stages, so that one that was stopped can go on from them.

A folder below ``scratch`` of the storage: what nobody went on with is swept after two days. The
growing preview lies in it too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.archive import storage

PREVIEW_NAME = "growing.jpg"
"""As ``ml.mosaic`` writes it among the stages of a build under way."""


def work_folder(mosaic_id: uuid.UUID) -> Path:
    """Of a mosaic under way; it may not be there."""
    return storage.root() / "scratch" / f"mosaic-{mosaic_id}"


def stages_folder(mosaic_id: uuid.UUID) -> Path:
    """The finished stages in it."""
    return work_folder(mosaic_id) / "stages"


def work_preview(mosaic_id: uuid.UUID) -> Path:
    """What has been stitched so far, as a small JPEG; it may not be there."""
    return stages_folder(mosaic_id) / PREVIEW_NAME


def work_exists(mosaic_id: uuid.UUID) -> bool:
    """Whether a stopped build left stages to go on from."""
    folder = stages_folder(mosaic_id)
    return folder.is_dir() and any(folder.iterdir())


@contextmanager
def work_claim(mosaic_id: uuid.UUID) -> Iterator[Path | None]:
    """The folder of stages for this process alone, or None where another one holds it.

    A worker that was paused, and whose job another one took over, may still write there: then the
    other works without finished stages rather than among those of a ghost.
    """
    folder = work_folder(mosaic_id)
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        yield None
        return
    try:
        yield stages_folder(mosaic_id)
    finally:
        os.close(handle)


def work_drop(mosaic_id: uuid.UUID) -> None:
    """Forget the stages."""
    shutil.rmtree(work_folder(mosaic_id), ignore_errors=True)
