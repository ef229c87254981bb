"""A new generation of an index, put beside the one that is searched; it resumes if stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ml.errors import IndexFormatError
from ml.index.qdrant import points
from ml.index.qdrant.records import Record, Unfinished, record_read, record_write
from ml.index.qdrant.server import QdrantServer
from ml.types import ArrayF32, ArrayI64

_SAMPLE, _SAMPLE_K = 64, 25  # vectors whose 25 nearest are compared with an exact search's


class Filling:
    """One filling. What is put before ``finish`` is found by no search.

    Attributes:
        source: what it is filled from: the words it was begun with, also when it continues.
        done_until: the last id that is there already; None if it begins. Go on behind it.
    """

    def __init__(self, server: QdrantServer, empty: Record, source: str) -> None:
        """Begin, or resume what an ended process left.

        Args:
            empty: the record where there is none yet.
        """
        self._server = server
        known = record_read(server, empty.name)
        # Of another dimension or encoder it would be another index under the same name.
        if known is None or (known.dim, known.tag) != (empty.dim, empty.tag):
            known = empty
        points.collection_made(server, known.collection, known.dim)
        under_way = known.filling
        if under_way is None:
            under_way = Unfinished(known.generation + 1, source)
            # What earlier processes put and never recorded, or recorded and did not take away.
            for key in known.keys_unnamed():
                points.taken_away(server, known, key)
            known = replace(known, filling=under_way)
            record_write(server, known)
        self._record, self._filling = known, under_way
        self.source, self.done_until = under_way.source, under_way.done_until

    @property
    def count(self) -> int:
        """How many vectors are there already."""
        return self._filling.count

    def put(self, ids: ArrayI64, vectors: ArrayF32) -> None:
        """Add ``ids`` (N,), ascending and above all before, and ``vectors`` (N, D)."""
        key = self._record.key(self._filling.generation)
        before = self._filling.count
        for last in points.put(self._server, self._record, key, ids, vectors):
            begun = int(np.searchsorted(ids, last, side="right"))
            self.done_until = last
            self._filling = replace(self._filling, done_until=last, count=before + begun)
            record_write(self._server, replace(self._record, filling=self._filling))

    def finish(self, *, exact_most: int, looked_at: int) -> Record:
        """Let searches find it, and delete the generation before.

        Args:
            exact_most, looked_at: as in ``QdrantConfig``; beyond, the recall is measured.
        Raises:
            IndexFormatError: vectors are missing that were put: somebody dropped the index.
        """
        old, generation = self._record, self._filling.generation
        key = old.key(generation)
        count = points.counted(self._server, old, key)
        if count != self._filling.count:
            record_write(self._server, replace(old, filling=None))
            points.taken_away(self._server, old, key)
            raise IndexFormatError(
                f"{count} of {self._filling.count} vectors are there; filling it again"
            )
        new = replace(
            old,
            version=old.version + 1,
            count=count,
            generation=generation,
            source=self.source,
            filling=None,
        )
        if count > exact_most:
            new = replace(new, recall=self._measured(new, looked_at))
        record_write(self._server, new)
        if old.generation:
            points.taken_away(self._server, old, old.key(old.generation))
        return new

    def _measured(self, record: Record, looked_at: int) -> float:
        """Share of what an exact search finds that the graph's finds, of a sample."""
        server, key = self._server, record.key(record.generation)
        every = points.held(server, record, key)
        rng = np.random.default_rng(record.generation)
        shares = []
        for own in rng.choice(every, min(_SAMPLE, len(every)), replace=False):
            zero = np.zeros(record.dim, dtype=np.float32)
            one = points.condition(key, allowed=np.array([own]))
            _, (q,) = points.nearest_points(server, record, zero, 1, one, exact=True, looked_at=1)
            asked = (server, record, q, _SAMPLE_K, points.condition(key))
            want, _ = points.nearest_points(*asked, exact=True, looked_at=1)
            found, _ = points.nearest_points(*asked, exact=False, looked_at=looked_at)
            shares.append(np.isin(want, found).mean())
        return float(np.mean(shares))
