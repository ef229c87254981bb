"""Opened index files, and what is newer than they are, kept between the searches of a process."""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ml.errors import MlError
from ml.index import Selection, VectorIndex
from ml.types import ArrayBool, ArrayF32, ArrayI64
from portal.retrieval.indexes import Scope, snapshot_open
from portal.retrieval.models import Encoder, IndexSnapshot
from portal.retrieval.selectors.embeddings import vectors_by_id

logger = logging.getLogger(__name__)
_READERS_KEPT = 32  # scopes; files are mapped: their pages are the system's cache
_SELECTION_BYTES = 128 << 20  # per process: some 1,000 filters of 1,000 regions, or 8 of 100,000
_DELTAS_KEPT = 16  # each at most some 10,000 vectors, 5 MB at 128 dimensions


@dataclass(frozen=True, slots=True)
class _Opened:
    """The index file of a scope that is kept open, and which snapshot it is of."""

    snapshot_id: uuid.UUID
    read_at: datetime
    index: VectorIndex


class Readers:
    """The newest index file of each scope, open; the longest unused goes first. Thread-safe.

    A file that was replaced is let go, or its pages, its room on the disk and its copy on a GPU
    would stay for as long as the process. A search under way ends with the file it began with.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: OrderedDict[tuple[uuid.UUID, uuid.UUID], _Opened] = OrderedDict()

    def get(self, snapshot: IndexSnapshot, encoder: Encoder) -> VectorIndex | None:
        """What the snapshot names, or None if it is missing, damaged or its server away (then
        the database is searched instead: slower, and still right)."""
        scope = (encoder.pk, snapshot.lab_id)
        with self._lock:
            kept = self._opened.get(scope)
        index = kept.index if kept and kept.snapshot_id == snapshot.pk else None
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
        self._keep(scope, _Opened(snapshot.pk, snapshot.read_at, index))
        return index

    def _keep(self, scope: tuple[uuid.UUID, uuid.UUID], opened: _Opened) -> None:
        with self._lock:
            kept = self._opened.get(scope)
            # Not by version: they begin at 1 again once all index files were forgotten.
            if kept is None or kept.read_at <= opened.read_at:
                self._opened[scope] = opened
            self._opened.move_to_end(scope)
            while len(self._opened) > _READERS_KEPT:
                self._opened.popitem(last=False)


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


class Selections:
    """Prepared sets of permitted ids, kept between the searches of a process. Thread-safe.

    They are known by what they hold, never by the filter that found it: what a filter permits may
    have changed since, and then it is another set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Selection] = OrderedDict()

    def get(self, ids: ArrayI64) -> Selection:
        """The set of ``ids`` (N,), as prepared before where it was asked for before."""
        ids = np.sort(ids)
        key = hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
        with self._lock:
            found = self._kept.pop(key, None)
        found = found or Selection(ids)
        with self._lock:
            self._kept[key] = found
            left = _SELECTION_BYTES
            for one in reversed(list(self._kept)):
                left -= self._kept[one].nbytes
                if left < 0 and one != key:
                    del self._kept[one]
        return found


readers = Readers()
selections = Selections()
deltas = Deltas()
