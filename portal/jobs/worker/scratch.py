"""Temporary folders of jobs on the storage volume, which may hold files not yet de-identified."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path

from portal.core.storage_layout import Place, ids_in
from portal.jobs.models import Job, JobState


def scratch_make(job_id: uuid.UUID) -> Path:
    """Create a folder named after its job."""
    path = Place.JOBS.path(job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))


def scratch_of(job_id: uuid.UUID) -> list[Path]:
    """Folders left by attempts of a job."""
    return [path for path in Place.JOBS.entries() if str(job_id) in ids_in(path.name)]


def scratch_abandoned() -> list[Path]:
    """Folders left by killed attempts of jobs that are not running.

    Folders are listed before the jobs are read, so a job that starts in between keeps its folder.
    """
    folders = {path: ids_in(path.name) for path in Place.JOBS.entries()}
    ids = set().union(*folders.values())
    running = Job.objects.filter(pk__in=ids, state=JobState.RUNNING).values_list("pk", flat=True)
    running_ids = {str(pk) for pk in running}
    return [path for path, job_ids in folders.items() if job_ids.isdisjoint(running_ids)]


def scratch_drop(folders: Iterable[Path]) -> None:
    """Remove folders with their contents."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
