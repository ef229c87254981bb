"""Working folder of a training: claimed by one worker, removed at its end."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.core.disk import require_room
from portal.jobs.models import JobState
from portal.model_training.models import Learning
from portal.model_training.selectors.folders import learning_folder, learning_folders
from portal.model_training.selectors.learnings import TRAIN_KIND

LOCK = "lock"


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """Folder of a training, locked by this process."""

    path: Path
    lock: int

    def require(self) -> None:
        """Extend its life by two days.

        Raises:
            FileNotFoundError: It was removed in the meantime, for example by an erasure; data read
                from it must be discarded.
        """
        os.utime(self.path)
        if not os.path.samestat((self.path / LOCK).stat(), os.fstat(self.lock)):
            raise FileNotFoundError(self.path.name)


@contextmanager
def learning_folder_claim(learning: Learning) -> Iterator[TrainingFolder]:
    """Lock the training folder for this process, with the files of an interrupted attempt.

    Without such files, the training and its time limit start from the beginning.

    Raises:
        BlockingIOError: A worker that was thought dead still uses it; try again later.
        StorageFullError: The volume has no space for work.
    """
    require_room()
    folder = learning_folder(learning.lab_id, learning.pk)
    folder.mkdir(parents=True, exist_ok=True)
    is_new = not (folder / LOCK).exists()
    with (folder / LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        claimed = TrainingFolder(folder, lock.fileno())
        claimed.require()
        if is_new:
            learning.trained_s = 0.0
            learning.save(update_fields=["trained_s"])
        yield claimed


def learning_folder_drop(learning: Learning) -> None:
    """Remove the folder of a training."""
    _drop(learning_folder(learning.lab_id, learning.pk), is_strict=False)


def learning_folders_drop(*, lab_id: uuid.UUID) -> None:
    """Remove the folders of a lab, for an erasure; running trainings start again.

    Raises:
        OSError: A file cannot be removed.
    """
    for folder in learning_folders(lab_id):
        _drop(folder, is_strict=True)


def _drop(folder: Path, *, is_strict: bool) -> None:
    """Move the folder away before removing it, so that a running writer adds nothing to it."""
    renamed = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    try:
        folder.rename(renamed)
    except FileNotFoundError:
        return
    shutil.rmtree(renamed, ignore_errors=not is_strict)


def training_folder_clean_up(*, payload: Mapping[str, Any]) -> None:
    """Remove the folder of a failed or cancelled training, on ``job.ended``."""
    if payload["kind"] != TRAIN_KIND or payload["state"] == JobState.SUCCEEDED:
        return
    for learning in Learning.all_objects.filter(job=uuid.UUID(payload["job_id"])):
        learning_folder_drop(learning)
