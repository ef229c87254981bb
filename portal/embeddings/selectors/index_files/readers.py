"""Per-process caches of open index files, of newer vectors and of id selections."""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from cachetools import LRUCache

from ml.errors import MlError
from ml.index.protocol import VectorIndex
from ml.index.selection import Selection
from ml.types import ArrayBool, ArrayF32, ArrayI64
from portal.embeddings.indexes import Scope, snapshot_open
from portal.embeddings.models import Encoder, IndexSnapshot
from portal.embeddings.selectors.embeddings import vectors_by_id

logger = logging.getLogger(__name__)
_MAX_READERS = 32  # scopes; files are memory-mapped
_SELECTION_BYTES = 128 << 20  # per process: some 1,000 filters of 1,000 regions, or 8 of 100,000
_BYTES_PER_ID = 160  # of a prepared selection at 128 dimensions
_MAX_DELTAS = 16  # at most 10,000 vectors each, 5 MB at 128 dimensions


@dataclass(frozen=True, slots=True)
class _OpenIndex:
    """An open index file and its snapshot."""

    snapshot_id: uuid.UUID
    read_at: datetime
    index: VectorIndex


class Readers:
    """Open index file of each scope; the least recently used is closed first. Thread-safe.

    A replaced file is released, else its pages, disk space and GPU copy would stay for the life of
    the process. A running search finishes with the file it started with.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: LRUCache[tuple[uuid.UUID, uuid.UUID], _OpenIndex] = LRUCache(_MAX_READERS)

    def get(self, snapshot: IndexSnapshot, encoder: Encoder) -> VectorIndex | None:
        """Open the index of a snapshot; None if it is missing, damaged or its server is
        unreachable.

        The search then reads the database instead, which is slower but gives the same answer.
        """
        scope = (encoder.pk, snapshot.lab_id)
        with self._lock:
            cached = self._opened.get(scope)
        index = cached.index if cached and cached.snapshot_id == snapshot.pk else None
        try:
            index = index or snapshot_open(snapshot, encoder)
            is_whole = index.stats.count == snapshot.count
        except (MlError, OSError):
            logger.exception("index file of snapshot %s cannot be read", snapshot.pk)
            return None
        if not is_whole:
            logger.error(
                "index file of snapshot %s is missing or belongs to another snapshot", snapshot.pk
            )
            return None
        self._store(scope, _OpenIndex(snapshot.pk, snapshot.read_at, index))
        return index

    def _store(self, scope: tuple[uuid.UUID, uuid.UUID], opened: _OpenIndex) -> None:
        with self._lock:
            cached = self._opened.get(scope)
            # Not by version: versions restart at 1 after all index files were deleted.
            if cached is None or cached.read_at <= opened.read_at:
                self._opened[scope] = opened


class Deltas:
    """Cache of vectors newer than the index file; rows never change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: LRUCache[tuple[uuid.UUID, uuid.UUID], tuple[ArrayI64, ArrayF32]]
        self._cache = LRUCache(_MAX_DELTAS)

    def get(self, scope: Scope, ids: ArrayI64) -> tuple[ArrayI64, ArrayF32]:
        """Ids (N,) ascending and their vectors; only new ones are read."""
        key = (scope.encoder.pk, scope.lab_id)
        with self._lock:
            old_ids, old_vectors = self._cache.get(key, _nothing(scope.encoder.dim))
        is_known: ArrayBool = np.isin(ids, old_ids)
        if not is_known.all():
            new_ids, new_vectors = vectors_by_id(ids[~is_known], dim=scope.encoder.dim)
            old_ids = np.concatenate([old_ids, new_ids])
            order = np.argsort(old_ids)
            old_ids = old_ids[order]
            old_vectors = np.concatenate([old_vectors, new_vectors])[order]
        is_requested = np.isin(old_ids, ids)
        delta = (
            (old_ids, old_vectors)
            if is_requested.all()
            else (old_ids[is_requested], old_vectors[is_requested])
        )
        with self._lock:
            self._cache[key] = delta
        return delta


def _nothing(dim: int) -> tuple[ArrayI64, ArrayF32]:
    return np.empty(0, dtype=np.int64), np.empty((0, dim), dtype=np.float32)


class Selections:
    """Cache of prepared sets of permitted ids. Thread-safe.

    Keyed by content, not by filter: the ids that a filter permits may have changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: LRUCache[bytes, Selection]
        self._cache = LRUCache(_SELECTION_BYTES, getsizeof=_selection_bytes)

    def get(self, ids: ArrayI64) -> Selection:
        """The prepared selection of ``ids`` (N,), cached."""
        ids = np.sort(ids)
        key = hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
        with self._lock:
            selection = self._cache.get(key)
        selection = selection or Selection(ids)
        with self._lock:
            self._cache[key] = selection  # updates its size in the cache
        return selection


def _selection_bytes(selection: Selection) -> int:
    """Size of a selection in memory, at least that of its future index."""
    return min(max(selection.nbytes, _BYTES_PER_ID * len(selection)), _SELECTION_BYTES)


readers = Readers()
selections = Selections()
deltas = Deltas()
