"""Opened index files, and what is newer than they are, kept between the searches of a process."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import OrderedDict
from pathlib import Path

import numpy as np

from ml.errors import MlError
from ml.index import FaissIndex, open_index
from ml.types import ArrayBool, ArrayF32, ArrayI64
from portal.archive import storage
from portal.retrieval.indexes import Scope, encoder_tag
from portal.retrieval.models import Encoder, IndexSnapshot
from portal.retrieval.selectors.embeddings import vectors_by_id

logger = logging.getLogger(__name__)
_READERS_KEPT = 32  # files are mapped: an open one costs address space, not memory
_DELTAS_KEPT = 16  # each at most some 10,000 vectors, 5 MB at 128 dimensions


class Readers:
    """Opened index files of this process, least recently used first out. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: OrderedDict[tuple[Path, uuid.UUID], FaissIndex] = OrderedDict()

    def get(self, snapshot: IndexSnapshot, encoder: Encoder) -> FaissIndex | None:
        """The snapshot's file, or None where it is missing or damaged (then the database is
        searched instead: slower, and still right)."""
        path = storage.resolve(snapshot.path)
        key = (path, snapshot.pk)
        with self._lock:
            index = self._opened.get(key)
            if index is not None:
                self._opened.move_to_end(key)
        try:
            index = index or open_index(path, dim=encoder.dim, tag=encoder_tag(encoder))
            is_whole = index.stats.count == snapshot.count
        except (MlError, OSError):
            logger.exception("index file of snapshot %s cannot be read", snapshot.pk)
            return None
        if not is_whole:
            logger.error("index file of snapshot %s is missing or another's", snapshot.pk)
            return None
        with self._lock:
            self._opened[key] = index
            while len(self._opened) > _READERS_KEPT:
                self._opened.popitem(last=False)
        return index


class Deltas:
    """Vectors newer than the index file, kept between queries: rows never change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[uuid.UUID, uuid.UUID], tuple[ArrayI64, ArrayF32]] = (
            OrderedDict()
        )

    def get(self, scope: Scope, ids: ArrayI64) -> tuple[ArrayI64, ArrayF32]:
        """``ids`` (N,) ascending and their vectors; only those not seen before are read."""
        key = (scope.encoder.pk, scope.lab_id)
        with self._lock:
            old_ids, old_vectors = self._kept.get(key, _nothing(scope.encoder.dim))
        is_known: ArrayBool = np.isin(ids, old_ids)
        if not is_known.all():
            new_ids, new_vectors = vectors_by_id(ids[~is_known], dim=scope.encoder.dim)
            old_ids = np.concatenate([old_ids, new_ids])
            order = np.argsort(old_ids)
            old_ids = old_ids[order]
            old_vectors = np.concatenate([old_vectors, new_vectors])[order]
        wanted = np.isin(old_ids, ids)
        found = (old_ids, old_vectors) if wanted.all() else (old_ids[wanted], old_vectors[wanted])
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > _DELTAS_KEPT:
                self._kept.popitem(last=False)
        return found


def _nothing(dim: int) -> tuple[ArrayI64, ArrayF32]:
    return np.empty(0, dtype=np.int64), np.empty((0, dim), dtype=np.float32)


readers = Readers()
deltas = Deltas()
