"""Temporary folders of jobs on the storage volume: they may hold a patient's file half cleaned."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings


def scratch_make(job_id: uuid.UUID) -> Path:
    """A new folder, named after its job."""
    parent = _parent()
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{job_id}-", dir=parent))


def scratch_of(job_id: uuid.UUID) -> list[Path]:
    """The folders that attempts of a job have made and not removed."""
    return list(_parent().glob(f"{job_id}-*"))


def scratch_drop(folders: Iterable[Path]) -> None:
    """Remove folders with all that is in them."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _parent() -> Path:
    return Path(settings.TESSERA_STORAGE) / "scratch"
