"""Temporary folders of jobs on the storage volume: they may hold a patient's file half cleaned."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path

from portal.core.storage_layout import Place, ids_in
from portal.jobs.models import Job, JobState


def scratch_make(job_id: uuid.UUID) -> Path:
    """A new folder, named after its job."""
    path = Place.JOBS.path(job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))


def scratch_of(job_id: uuid.UUID) -> list[Path]:
    """The folders that attempts of a job have made and not removed."""
    return [path for path in Place.JOBS.entries() if str(job_id) in ids_in(path.name)]


def scratch_abandoned() -> list[Path]:
    """The folders of all jobs that no worker is at: left by attempts that were killed.

    They are looked up before the jobs: whatever is begun in between is not among them.
    """
    folders = {path: ids_in(path.name) for path in Place.JOBS.entries()}
    ids = set().union(*folders.values())
    running = Job.objects.filter(pk__in=ids, state=JobState.RUNNING).values_list("pk", flat=True)
    at_work = {str(pk) for pk in running}
    return [path for path, found in folders.items() if found.isdisjoint(at_work)]


def scratch_drop(folders: Iterable[Path]) -> None:
    """Remove folders with all that is in them."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
