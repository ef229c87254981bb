"""Index files: whose vectors they hold and where they lie.

::

    <root>/indexes/<encoder>/<lab>/<snapshot>/    one folder a snapshot, never changed once named
"""

from __future__ import annotations

import shutil
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from portal.archive import storage
from portal.retrieval.models import Encoder

_PRUNE_AFTER_S = 3600
"""A folder is left alone so long: a search that began with an older snapshot ends with it."""


def encoder_tag(encoder: Encoder) -> str:
    """Whose vectors a file holds, as kept in its manifest."""
    return f"{encoder.name}/{encoder.version}/{encoder.config_hash}"


def scope_folder(scope: Scope) -> Path:
    """Where the scope's snapshots lie."""
    return storage.root() / "indexes" / str(scope.encoder.pk) / str(scope.lab_id)


def prune(scope: Scope, *, keep: set[uuid.UUID]) -> None:
    """Remove folders of replaced snapshots and of builds that never finished."""
    for folder in scope_folder(scope).iterdir():
        is_old = time.time() - folder.stat().st_mtime > _PRUNE_AFTER_S
        if is_old and folder.name not in {str(one) for one in keep}:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose vectors are searched: one encoder's, of one lab."""

    encoder: Encoder
    lab_id: uuid.UUID
