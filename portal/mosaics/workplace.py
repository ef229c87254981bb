"""Where a build keeps its finished stages, so that one that was stopped can go on from them.

A folder below ``scratch`` of the storage: what nobody went on with is swept after two days. The
growing preview lies in it too.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from portal.archive import storage

PREVIEW_NAME = "preview.jpg"


def work_folder(mosaic_id: uuid.UUID) -> Path:
    """The folder of a mosaic under way; it may not be there."""
    return storage.root() / "scratch" / f"mosaic-{mosaic_id}"


def work_preview(mosaic_id: uuid.UUID) -> Path:
    """What has been stitched so far, as a small JPEG; it may not be there."""
    return work_folder(mosaic_id) / PREVIEW_NAME


def work_exists(mosaic_id: uuid.UUID) -> bool:
    """Whether a stopped build left stages to go on from."""
    folder = work_folder(mosaic_id)
    return folder.is_dir() and any(folder.iterdir())


def work_drop(mosaic_id: uuid.UUID) -> None:
    """Forget the stages."""
    shutil.rmtree(work_folder(mosaic_id), ignore_errors=True)
