"""Location of index files, or of indexes on a server.

::

    <root>/indexes/<encoder>/<lab>/<snapshot>/    one folder per snapshot, never changed

On a server the index of a snapshot is named ``<encoder>/<lab>/<version>``.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from ml.errors import IndexUnreachableError
from ml.index import open_index
from ml.index.milvus.engine import MilvusIndex, drop_indexes, open_milvus
from ml.index.milvus.server import MilvusServer
from ml.index.protocol import VectorIndex
from portal.archive.storage import files as storage
from portal.core.storage_layout import Place
from portal.embeddings.models import Encoder, IndexSnapshot

FILES, MILVUS = "files", "milvus"
_PRUNE_AFTER_S = 3600
"""Age of a replaced folder before it is removed; running searches may still use it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Vectors to search: those of one encoder in one lab."""

    encoder: Encoder
    lab_id: uuid.UUID


def encoder_tag(encoder: Encoder) -> str:
    """Tag that identifies the encoder in an index file's manifest."""
    return f"{encoder.name}/{encoder.version}/{encoder.config_hash}"


def server() -> MilvusServer | None:
    """The configured index server; None if there is none."""
    values: dict[str, Any] | None = settings.TESSERA_MILVUS
    return MilvusServer(**values) if values else None


def snapshot_open(snapshot: IndexSnapshot, encoder: Encoder) -> VectorIndex:
    """Open the index that a snapshot refers to.

    Raises:
        MlError, OSError: The index cannot be read.
    """
    if snapshot.engine == MILVUS:
        return _milvus_index(snapshot.path, Scope(encoder, snapshot.lab_id))
    path = storage.resolve(snapshot.path)
    return open_index(path, dim=encoder.dim, tag=encoder_tag(encoder))


def server_index(scope: Scope, version: int) -> tuple[str, MilvusIndex]:
    """Name and index on the server of the scope's next snapshot.

    Raises:
        IndexUnreachableError: the server does not answer, or none is configured.
    """
    name = f"{_group(scope)}/{version}"
    return name, _milvus_index(name, scope)


def scope_folder(scope: Scope) -> Path:
    """Folder of the scope's snapshots."""
    return Place.INDEXES.path(scope.encoder.pk) / str(scope.lab_id)


def prune(scope: Scope, *, keep: Collection[IndexSnapshot]) -> None:
    """Remove the files of replaced snapshots and of unfinished builds."""
    folder, names = scope_folder(scope), {str(snapshot.pk) for snapshot in keep}
    for entry in folder.iterdir() if folder.exists() else ():
        is_old = time.time() - entry.stat().st_mtime > _PRUNE_AFTER_S
        if is_old and entry.name not in names:
            shutil.rmtree(entry, ignore_errors=True)
    server_drop(scope, keep=frozenset(snapshot.path for snapshot in keep))


def server_drop(scope: Scope, *, keep: frozenset[str] = frozenset()) -> None:
    """Delete the scope's indexes on the server except ``keep``; nothing without a server.

    Raises:
        IndexUnreachableError: the server does not answer.
    """
    if (milvus := server()) is not None:
        drop_indexes(milvus, _group(scope), keep=keep)


def _milvus_index(name: str, scope: Scope) -> MilvusIndex:
    milvus = server()
    if milvus is None:
        raise IndexUnreachableError("TESSERA_MILVUS_URL is not set")
    return open_milvus(milvus, name, scope.encoder.dim, tag=encoder_tag(scope.encoder))


def _group(scope: Scope) -> str:
    return f"{scope.encoder.pk}/{scope.lab_id}"
