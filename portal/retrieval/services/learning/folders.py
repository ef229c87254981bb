"""The folder that a training works in: claimed by one worker, removed at its end."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from portal.core.disk import require_room
from portal.jobs.models import JobState
from portal.retrieval.models import Learning
from portal.retrieval.selectors import TRAIN_KIND, learning_folder


@contextmanager
def learning_folder_claim(learning: Learning) -> Iterator[Path]:
    """The folder for this process alone, with what an attempt that was killed left in it.

    Raises:
        BlockingIOError: a worker that was thought dead is still in it; try again later.
        StorageFullError: the volume has no room for work.
    """
    require_room()
    folder = learning_folder(learning.lab_id, learning.pk)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)  # its two days start again
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder


def learning_folder_drop(learning: Learning) -> None:
    """Remove the pictures, the checkpoint and all else."""
    shutil.rmtree(learning_folder(learning.lab_id, learning.pk), ignore_errors=True)


def training_ended(*, payload: Mapping[str, Any]) -> None:
    """Remove what a failed or cancelled training left. Heard from ``job.ended``."""
    if payload["kind"] != TRAIN_KIND or payload["state"] == JobState.SUCCEEDED:
        return
    for learning in Learning.everything.filter(job=uuid.UUID(payload["job_id"])):
        learning_folder_drop(learning)
