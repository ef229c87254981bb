"""The Milvus engine: a vector index on a server or cluster.

The server proposes candidates, which are ranked here by exact distances, so that distances and the
order of ties are those of the engine in files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ml.errors import BadInputError, IndexFormatError
from ml.index.exact import SearchResult, exact_distances, nearest, permitted_mask
from ml.index.milvus import vectors as stored
from ml.index.milvus.filling import Filling
from ml.index.milvus.records import (
    Record,
    State,
    alias_of,
    drop_generations,
    read_record,
    write_state,
)
from ml.index.milvus.server import MilvusServer
from ml.index.milvus.vectors import MAX_CANDIDATES, MAX_LISTED
from ml.index.protocol import IndexStats, VectorIndex
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayI64, Progress, no_progress

_MARGIN = 16
"""Vectors fetched past k, as the server rounds distances and does not order ties."""
_GROWTH = 4  # factor of the next request if there were too few
_ROUNDING = 1e-4  # relative; far above the float32 error of a sum over some hundred values


@dataclass(frozen=True, slots=True)
class MilvusConfig:
    """Configuration of searches."""

    max_exact: int = 500_000  # largest collection that is searched exactly, as in files
    ef: int = 256  # vectors of the HNSW graph that a search of larger ones visits


class MilvusIndex(VectorIndex):
    """A vector index by name on a server. Each search reads its record first.

    Callers must allow one writer at a time: the portal writes in jobs, one of which runs. A search
    during ``add`` may find some of the new vectors before the others.
    """

    def __init__(self, server: MilvusServer, alias: str, empty: Record, config: MilvusConfig):
        self._server, self._alias, self._empty, self._config = server, alias, empty, config
        self._record()

    @property
    def dim(self) -> int:
        """See ``VectorIndex``."""
        return self._empty.dim

    @property
    def stats(self) -> IndexStats:
        """See ``VectorIndex``."""
        record = self._record()
        state = record.state
        return IndexStats(
            version=state.version,
            count=state.count,
            dim=self.dim,
            tag=record.tag,
            kind=state.kind if state.count else "empty",
            n_delta=0,
            n_removed=0,
            recall=state.recall,
        )

    @property
    def source(self) -> str:
        """Source of the content as given to ``fill``; empty for none."""
        record = self._record()
        return record.source if record.generation else ""

    def ids(self) -> ArrayI64:
        """See ``VectorIndex``."""
        record = self._record()
        if not record.generation:
            return np.empty(0, dtype=np.int64)
        return stored.all_ids(self._server, record.collection)

    def fill(self, source: str) -> Filling:
        """Begin a new generation, or resume an unfinished one."""
        return Filling(self._server, self._alias, self._record(), source)

    def finish(self, filling: Filling) -> int:
        """Make a filled generation the one that is searched; returns the version."""
        config = self._config
        return filling.finish(max_exact=config.max_exact, ef=config.ef)

    def _build(self, ids: ArrayI64, vectors: ArrayF32, progress: Progress) -> int:
        # An unfinished generation may have other content.
        drop_generations(self._server, self._alias, keep=self._record().generation)
        filling = self.fill("")
        filling.put(ids, vectors)
        progress(len(ids), len(ids), "vectors")
        return self.finish(filling)

    def _add(self, ids: ArrayI64, vectors: ArrayF32) -> int:
        record = self._record()
        if not record.generation:
            return self._build(ids, vectors, no_progress)
        existing, _ = stored.vectors_of(self._server, record.collection, ids, self.dim)
        if len(existing):
            raise BadInputError(f"id {existing[0]} is already in the index; remove it first")
        self._edit(record, len(ids))
        for _ in stored.upsert(self._server, record.collection, ids, vectors):
            pass
        return record.state.version + 1

    def _remove(self, ids: ArrayI64) -> int:
        record = self._record()
        if not record.generation or not len(ids):
            return 0
        existing, _ = stored.vectors_of(self._server, record.collection, ids, self.dim)
        if len(existing):
            self._edit(record, -len(existing))
            stored.delete(self._server, record.collection, existing)
        return len(existing)

    def _search(
        self, q: ArrayF32, k: int, allowed: Selection | None, excluded: ArrayI64 | None
    ) -> SearchResult:
        """Search on the server.

        Short lists of ids are sent with the request. Long ones, which the server would parse for
        seconds, filter its candidates here; more are requested until there are enough.
        """
        record = self._record()
        excluded_ids = None if excluded is None else np.unique(excluded)
        if not record.state.count or (allowed is not None and not len(allowed)):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        longest = max(
            len(ids) for ids in (allowed or (), () if excluded_ids is None else excluded_ids)
        )
        n, max_listed = k + _MARGIN, MAX_LISTED
        if allowed is not None and len(allowed) > max_listed:
            n = 2 * n * record.state.count // len(allowed)
            if n > MAX_CANDIDATES:
                n, max_listed = k + _MARGIN, longest
        while True:
            n = min(n, MAX_CANDIDATES)
            ids, approximate = stored.candidates(
                self._server,
                record.collection,
                q,
                n,
                stored.filter_expression(
                    allowed=allowed.ids
                    if allowed is not None and len(allowed) <= max_listed
                    else None,
                    excluded=excluded_ids
                    if excluded_ids is not None and len(excluded_ids) <= max_listed
                    else None,
                ),
                ef=self._config.ef,
                is_edited=record.state.is_edited,
            )
            is_end, last = len(ids) < n, approximate[-1:]
            mask = permitted_mask(ids, allowed, excluded_ids)
            ids, approximate = ids[mask], approximate[mask]
            bound = approximate[k - 1] * (1 + _ROUNDING) if len(ids) >= k else np.inf
            if is_end or last > bound or (n == MAX_CANDIDATES and longest <= max_listed):
                return self._rank(record, q, ids[approximate <= bound], k)
            n, max_listed = (
                (n * _GROWTH, max_listed) if n < MAX_CANDIDATES else (k + _MARGIN, longest)
            )

    def drop(self) -> None:
        """Delete the index permanently."""
        drop_generations(self._server, self._alias)

    def _edit(self, record: Record, by: int) -> None:
        """Record a change before it is made, so that later searches read consistently."""
        state = record.state
        new = replace(state, version=state.version + 1, count=state.count + by, is_edited=True)
        write_state(self._server, record.collection, new)

    def _rank(self, record: Record, q: ArrayF32, ids: ArrayI64, k: int) -> SearchResult:
        known_ids, vectors = stored.vectors_of(
            self._server, record.collection, ids, self.dim, is_edited=record.state.is_edited
        )
        return nearest(known_ids, exact_distances(q, vectors), k)

    def _record(self) -> Record:
        record = read_record(self._server, self._alias) or self._empty
        if record.dim != self.dim:
            raise IndexFormatError(f"the index: expected dim {self.dim}, got {record.dim}")
        if self._empty.tag and record.tag and record.tag != self._empty.tag:
            raise IndexFormatError(
                f"the index: expected tag {self._empty.tag!r}, got {record.tag!r}"
            )
        return record


def open_milvus(
    server: MilvusServer,
    name: str,
    dim: int = 128,
    *,
    tag: str = "",
    config: MilvusConfig | None = None,
) -> MilvusIndex:
    """Open the index ``name``; the first write creates one that does not exist.

    Args:
        tag: Encoder of the vectors, as in ``open_index``.
    Raises:
        IndexUnreachableError: The server does not answer.
        IndexFormatError: It holds an index of this name and another dimension or tag.
        BadInputError, MissingDependencyError: dim is below 1; the client is not installed.
    """
    if dim < 1:
        raise BadInputError(f"dim: expected at least 1, got {dim}")
    empty = Record("", 0, dim, tag, "", State())
    return MilvusIndex(server, alias_of(name), empty, config or MilvusConfig())


def drop_indexes(server: MilvusServer, prefix: str, *, keep: frozenset[str] = frozenset()) -> None:
    """Delete all indexes ``<prefix>/...`` except those in ``keep``."""
    kept_aliases, alias_prefix = {alias_of(name) for name in keep}, alias_of(f"{prefix}/")
    for collection in server.call("list_collections"):
        if (
            collection.startswith(alias_prefix)
            and collection.rpartition("_")[0] not in kept_aliases
        ):
            server.call("drop_collection", collection)
