"""The Qdrant engine: a ``VectorIndex`` whose vectors lie on servers.

The server proposes, with the payload as filter; the caller's own distances rank, so that they, ties
and their order are those of the engine in files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, IndexFormatError
from ml.index.exact import Allowed, exact_distances, nearest
from ml.index.inputs import checked_entries, checked_ids, checked_k, checked_query
from ml.index.protocol import IndexStats
from ml.index.qdrant import points
from ml.index.qdrant.filling import Filling
from ml.index.qdrant.records import (
    Record,
    collection_of,
    record_delete,
    record_read,
    record_write,
    records_of,
)
from ml.index.qdrant.server import QdrantServer
from ml.index.selection import Selection
from ml.types import ArrayF64, ArrayI64, Progress, no_progress

_MARGIN = 16
"""Vectors asked for past k: the server's order is float32's, and has ties as it finds them."""
_OVERSAMPLING = 4
"""Times more where the server looks among 8-bit copies, and whenever a tie reaches the end."""
_ROUNDING = 1e-4  # relative; far above float32's of a sum over some hundred values


@dataclass(frozen=True, slots=True)
class QdrantConfig:
    """How an index is searched."""

    exact_most: int = 500_000  # so many vectors are all looked at, as in files
    looked_at: int = 256  # vectors of the graph that a search of more visits (Qdrant's hnsw_ef)


class QdrantIndex:
    """A ``VectorIndex`` by name on a server. Each search reads its record first.

    The caller must keep to one writer at a time: the portal writes in jobs, of which one runs.
    """

    def __init__(self, server: QdrantServer, empty: Record, config: QdrantConfig) -> None:
        self._server, self._empty, self._config = server, empty, config
        self._record()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._empty.dim

    @property
    def stats(self) -> IndexStats:
        """The state of the newest version."""
        record = self._record()
        kind = "hnsw" if record.count > self._config.exact_most else "flat"
        return IndexStats(
            version=record.version,
            count=record.count,
            dim=self.dim,
            tag=record.tag,
            kind=kind if record.count else "empty",
            n_delta=0,
            n_removed=0,
            recall=record.recall,
        )

    @property
    def source(self) -> str:
        """What the content was filled from, as the filling process stated it; empty for none."""
        record = self._record()
        return record.source if record.generation else ""

    def ids(self) -> ArrayI64:
        """(N,) int64, every id it holds, ascending."""
        record = self._record()
        if not record.generation:
            return np.empty(0, dtype=np.int64)
        return points.held(self._server, record, record.key(record.generation))

    def fill(self, source: str) -> Filling:
        """Begin a new generation, or resume one that was never finished."""
        return Filling(self._server, self._empty, source)

    def finish(self, filling: Filling) -> int:
        """Let searches find what was filled; returns the version."""
        config = self._config
        return filling.finish(exact_most=config.exact_most, looked_at=config.looked_at).version

    def build(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, *, progress: Progress = no_progress
    ) -> int:
        """Replace the whole content in one step; as ``FaissIndex.build``."""
        all_ids, all_vectors = checked_entries(ids, vectors, self.dim)
        known = self._record()
        if known.filling is not None:  # of another content, perhaps
            record_write(self._server, replace(known, filling=None))
        filling = self.fill("")
        filling.put(all_ids, all_vectors)
        progress(len(all_ids), len(all_ids), "vectors")
        return self.finish(filling)

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> int:
        """Add vectors under new ids; as ``FaissIndex.add``, except that a search meanwhile may
        find some of them before the others."""
        new_ids, new_vectors = checked_entries(ids, vectors, self.dim)
        record = self._record()
        if not record.generation:
            return self.build(new_ids, new_vectors)
        key = record.key(record.generation)
        held = points.held(self._server, record, key, new_ids)
        if len(held):
            raise BadInputError(f"id {held[0]} is already in the index; remove it first")
        for _ in points.put(self._server, record, key, new_ids, new_vectors):
            pass
        return self._changed(record, len(new_ids))

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove ``ids`` (N,); as ``FaissIndex.remove``."""
        gone, record = np.unique(checked_ids(ids)), self._record()
        if not record.generation or not len(gone):
            return 0
        key = record.key(record.generation)
        held = points.held(self._server, record, key, gone)
        if len(held):
            points.taken_away(self._server, record, key, held)
            self._changed(record, -len(held))
        return len(held)

    def compact(self, *, progress: Progress = no_progress) -> int:
        """The server compacts by itself: returns the version, unchanged."""
        return self._record().version

    def search(
        self,
        q: npt.ArrayLike,
        k: int,
        allowed: Allowed | None = None,
        excluded: npt.ArrayLike | None = None,
    ) -> tuple[ArrayI64, ArrayF64]:
        """The nearest; as ``FaissIndex.search``. The ids of a filter go with the request."""
        query, k, record = checked_query(q, self.dim), checked_k(k), self._record()
        if allowed is not None and not isinstance(allowed, Selection):
            allowed = Selection(allowed)
        gone = None if excluded is None else np.unique(checked_ids(excluded, name="excluded"))
        if not record.generation or (allowed is not None and not len(allowed)):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        key = record.key(record.generation)
        permitted = None if allowed is None else allowed.ids
        filtered = points.condition(key, allowed=permitted, excluded=gone)
        exact = record.count <= self._config.exact_most
        n = k * (1 if exact else _OVERSAMPLING) + _MARGIN
        while True:
            ids, vectors = points.nearest_points(
                self._server,
                record,
                query,
                n,
                filtered,
                exact=exact,
                looked_at=self._config.looked_at,
            )
            found, distance = nearest(ids, exact_distances(query, vectors), len(ids))
            at_end = len(ids) < n or distance[-1] > distance[k - 1] * (1 + _ROUNDING)
            if at_end:
                return found[:k], distance[:k]
            n *= _OVERSAMPLING

    def drop(self) -> None:
        """Delete it for good: its vectors, then its record."""
        record = record_read(self._server, self._empty.name)
        if record is not None:
            _dropped(self._server, record)

    def _changed(self, record: Record, by: int) -> int:
        new = replace(record, version=record.version + 1, count=record.count + by)
        record_write(self._server, new)
        return new.version

    def _record(self) -> Record:
        record = record_read(self._server, self._empty.name) or self._empty
        if record.dim != self.dim:
            raise IndexFormatError(f"the index: expected dim {self.dim}, got {record.dim}")
        if self._empty.tag and record.tag and record.tag != self._empty.tag:
            raise IndexFormatError(
                f"the index: expected tag {self._empty.tag!r}, got {record.tag!r}"
            )
        return record


def open_qdrant(
    server: QdrantServer,
    name: str,
    dim: int = 128,
    *,
    tag: str = "",
    group: str = "",
    config: QdrantConfig | None = None,
) -> QdrantIndex:
    """Open the index ``name``; one that is not there yet is made by the first write.

    Args:
        tag: whose vectors these are, as in ``open_index``. group: what it is dropped with.
    Raises:
        IndexUnreachableError: the server does not answer.
        IndexFormatError: it holds an index of this name and another dimension or tag.
        BadInputError, MissingDependencyError: dim is below 1; the client is not installed.
    """
    if dim < 1:
        raise BadInputError(f"dim: expected at least 1, got {dim}")
    empty = Record(name, group, collection_of(tag, dim), dim, tag)
    return QdrantIndex(server, empty, config or QdrantConfig())


def drop_group(server: QdrantServer, group: str, *, keep: frozenset[str] = frozenset()) -> int:
    """Delete all indexes of a group but those named; returns how many went."""
    gone = [one for one in records_of(server, group) if one.name not in keep]
    for record in gone:
        _dropped(server, record)
    return len(gone)


def _dropped(server: QdrantServer, record: Record) -> None:
    for key in (record.key(record.generation), *record.keys_unnamed()):
        points.taken_away(server, record, key)
    record_delete(server, record)
