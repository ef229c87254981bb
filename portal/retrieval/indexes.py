"""Index files, or indexes on a server: whose vectors they hold and where they lie.

::

    <root>/indexes/<encoder>/<lab>/<snapshot>/    one folder a snapshot, never changed once named

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
from ml.index import VectorIndex, open_index
from ml.index.qdrant import QdrantIndex, QdrantServer, drop_group, open_qdrant
from portal.archive import storage
from portal.core.storage_layout import Place
from portal.retrieval.models import Encoder, IndexSnapshot

FILES, QDRANT = "files", "qdrant"
_PRUNE_AFTER_S = 3600
"""A folder is kept for this long: a search that began with an older snapshot ends with it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose vectors are searched: one encoder's, of one lab."""

    encoder: Encoder
    lab_id: uuid.UUID


def encoder_tag(encoder: Encoder) -> str:
    """Whose vectors a file holds, as kept in its manifest."""
    return f"{encoder.name}/{encoder.version}/{encoder.config_hash}"


def server() -> QdrantServer | None:
    """The server that is configured, whether or not new indexes are made there."""
    found: dict[str, Any] | None = settings.TESSERA_QDRANT
    return QdrantServer(**found) if found else None


def snapshot_open(snapshot: IndexSnapshot, encoder: Encoder) -> VectorIndex:
    """What a snapshot names.

    Raises:
        MlError, OSError: it cannot be read.
    """
    if snapshot.engine == QDRANT:
        return _on_server(snapshot.path, Scope(encoder, snapshot.lab_id))
    path = storage.resolve(snapshot.path)
    return open_index(path, dim=encoder.dim, tag=encoder_tag(encoder))


def server_index(scope: Scope, version: int) -> tuple[str, QdrantIndex]:
    """Name and index on the server of the scope's next snapshot.

    Raises:
        IndexUnreachableError: the server does not answer, or none is configured.
    """
    name = f"{_group(scope)}/{version}"
    return name, _on_server(name, scope)


def scope_folder(scope: Scope) -> Path:
    """Where the scope's snapshots lie."""
    return Place.INDEXES.path(scope.encoder.pk) / str(scope.lab_id)


def prune(scope: Scope, *, keep: Collection[IndexSnapshot]) -> None:
    """Remove what replaced snapshots name, and builds that never finished."""
    folder, kept = scope_folder(scope), {str(one.pk) for one in keep}
    for one in folder.iterdir() if folder.exists() else ():
        is_old = time.time() - one.stat().st_mtime > _PRUNE_AFTER_S
        if is_old and one.name not in kept:
            shutil.rmtree(one, ignore_errors=True)
    server_drop(scope, keep=frozenset(one.path for one in keep))


def server_drop(scope: Scope, *, keep: frozenset[str] = frozenset()) -> None:
    """Delete the scope's indexes on the server except ``keep``; nothing without a server.

    Raises:
        IndexUnreachableError: the server does not answer.
    """
    if (found := server()) is not None:
        drop_group(found, _group(scope), keep=keep)


def _on_server(name: str, scope: Scope) -> QdrantIndex:
    found = server()
    if found is None:
        raise IndexUnreachableError("TESSERA_QDRANT_URL is not set")
    encoder = scope.encoder
    tag, group = encoder_tag(encoder), _group(scope)
    return open_qdrant(found, name, encoder.dim, tag=tag, group=group)


def _group(scope: Scope) -> str:
    return f"{scope.encoder.pk}/{scope.lab_id}"
