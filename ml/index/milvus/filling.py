"""Filling of a new generation while the old one is searched, resumable after a stop."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ml.errors import IndexFormatError
from ml.index.milvus import vectors as stored
from ml.index.milvus.records import (
    Record,
    State,
    create_collection,
    drop_generations,
    read_record,
    write_state,
)
from ml.index.milvus.server import MilvusServer
from ml.types import ArrayF32, ArrayI64

_SAMPLE, _SAMPLE_K = 64, 25  # queries and neighbours of the recall measurement


class Filling:
    """Fills one generation; it is not searched before ``finish``.

    Attributes:
        source: Source of the vectors, as given when filling began.
    """

    def __init__(self, server: MilvusServer, alias: str, current: Record, source: str) -> None:
        """Begin, or resume what an earlier process began.

        Args:
            current: Generation that is searched now.
        """
        # Nobody waits for its searches, and an exact one of millions of vectors takes long.
        server = replace(server, search_s=server.write_s)
        self._server, self._alias, self._current = server, alias, current
        generation = current.generation + 1
        name = f"{alias}_{generation}"
        record = read_record(server, name)
        if record is None or (record.dim, record.tag) != (current.dim, current.tag):
            drop_generations(server, alias, keep=current.generation)
            record = Record(name, generation, current.dim, current.tag, source, State())
            create_collection(server, record)
        self._record, self._state = record, record.state
        self.source = record.source

    @property
    def done_until(self) -> int | None:
        """Last stored id, to continue after; None at the beginning."""
        return self._state.done_until

    @property
    def count(self) -> int:
        """Number of vectors stored."""
        return self._state.count

    def put(self, ids: ArrayI64, vectors: ArrayF32) -> None:
        """Add ``ids`` (N,), ascending and above all earlier ones, and ``vectors`` (N, D)."""
        name = self._record.collection
        for batch_ids in stored.upsert(self._server, name, ids, vectors):
            count = self._state.count + len(batch_ids)
            self._state = replace(self._state, done_until=int(batch_ids[-1]), count=count)
            write_state(self._server, name, self._state)

    def finish(self, *, max_exact: int, ef: int) -> int:
        """Make it the generation that is searched.

        The previous generation stays until the next filling.

        Args:
            max_exact, ef: As in ``MilvusConfig``; the recall of a larger collection is measured.
        Returns:
            The new version.
        Raises:
            IndexFormatError: The server has fewer or more vectors than were written.
        """
        server, name, count = self._server, self._record.collection, self._state.count
        server.call("flush", name)
        stored.set_index(server, name, "flat")
        stored_count = stored.count_vectors(server, name)
        if stored_count != count:
            server.call("drop_collection", name)
            raise IndexFormatError(
                f"{stored_count} of {count} vectors are stored; it will be filled again"
            )
        state = replace(self._state, version=self._current.state.version + 1, kind="flat")
        if count > max_exact:
            state = replace(state, kind="hnsw", recall=self._build_graph(ef))
        write_state(server, name, state)
        server.call(
            "alter_alias" if self._current.generation else "create_alias", name, self._alias
        )
        return state.version

    def _build_graph(self, ef: int) -> float:
        """Build the HNSW graph and return its recall of an exact search over a sample."""
        server, name = self._server, self._record.collection
        rng, dim = np.random.default_rng(self._record.generation), self._record.dim
        sample_ids = np.unique(rng.choice(stored.all_ids(server, name), _SAMPLE))
        _, queries = stored.vectors_of(server, name, sample_ids, dim)

        def search_all() -> list[ArrayI64]:
            search = partial(stored.candidates, server, name, n=_SAMPLE_K, ef=ef)
            return [search(q=q, expression="", is_edited=False)[0] for q in queries]

        exact = search_all()
        stored.set_index(server, name, "hnsw")
        return float(
            np.mean([np.isin(*both).mean() for both in zip(exact, search_all(), strict=True)])
        )
