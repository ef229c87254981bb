"""The folder that a training works in: claimed by one worker, removed at its end."""

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
from portal.retrieval.models import Learning
from portal.retrieval.selectors import TRAIN_KIND, learning_folder, learning_folders

LOCK = "lock"


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of a training while this process holds it."""

    path: Path
    lock: int

    def require(self) -> None:
        """Keep it for two days more.

        Raises:
            FileNotFoundError: it was removed in the meantime, as by an erasure; what was read from
                it must not be kept, and the next attempt begins again.
        """
        os.utime(self.path)
        if not os.path.samestat((self.path / LOCK).stat(), os.fstat(self.lock)):
            raise FileNotFoundError(self.path.name)


@contextmanager
def learning_folder_claim(learning: Learning) -> Iterator[TrainingFolder]:
    """The folder for this process alone, with what an attempt that was killed left in it.

    Where nothing is left the training begins again, and so do its hours.

    Raises:
        BlockingIOError: a worker that was thought dead is still in it; try again later.
        StorageFullError: the volume has no room for work.
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
    """Remove the pictures, the checkpoint and all else."""
    _drop(learning_folder(learning.lab_id, learning.pk), is_strict=False)


def learning_folders_drop(*, lab_id: uuid.UUID) -> None:
    """Remove those of a lab, for an erasure: a training under way begins again.

    Raises:
        OSError: something cannot be removed.
    """
    for folder in learning_folders(lab_id):
        _drop(folder, is_strict=True)


def _drop(folder: Path, *, is_strict: bool) -> None:
    """Moved away first, so that whoever still works in it finds it gone and adds nothing."""
    gone = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    shutil.rmtree(gone, ignore_errors=not is_strict)


def training_ended(*, payload: Mapping[str, Any]) -> None:
    """Remove what a failed or cancelled training left. Heard from ``job.ended``."""
    if payload["kind"] != TRAIN_KIND or payload["state"] == JobState.SUCCEEDED:
        return
    for learning in Learning.everything.filter(job=uuid.UUID(payload["job_id"])):
        learning_folder_drop(learning)
