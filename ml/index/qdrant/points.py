"""Vectors of one collection: put, found, counted and taken away, by what their payload says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ml.index.qdrant.records import Record, point_id
from ml.index.qdrant.server import QdrantServer, asking
from ml.types import ArrayF32, ArrayI64

_VALUES_AT_ONCE = 400_000
"""Of one request: some 8 MB as JSON, of the 32 MB that a server takes."""
_ROWS_MOST = 1_000  # of one request, however short the vectors are
_PAGE = 10_000  # ids read at once
_GRAPH_LINKS = 16  # of the graph of one index among its like; Qdrant's own default of a whole graph


def collection_made(server: QdrantServer, name: str, dim: int) -> None:
    """Make the collection if it is missing: sharded, replicated, mapped, one graph per index."""
    from qdrant_client import models

    with asking():
        if server.client.collection_exists(name):
            return
        server.client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=dim, distance=models.Distance.EUCLID, on_disk=True
            ),
            shard_number=server.shards,
            replication_factor=server.replicas,
            write_consistency_factor=server.confirmations,
            # No graph over all: every search is of one index, and has its index' own.
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=_GRAPH_LINKS),
            quantization_config=models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
            ),
        )
        if not server.url.startswith("http"):
            return  # the local mode scans, and knows no indexes of payload
        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        server.client.create_payload_index(name, "index", field_schema=tenant)
        own = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True)
        server.client.create_payload_index(name, "id", field_schema=own)


def condition(
    key: str, *, allowed: ArrayI64 | None = None, excluded: ArrayI64 | None = None
) -> Any:
    """What a vector's payload has to say: of this generation, of these ids and not of those."""
    from qdrant_client import models

    must: list[Any] = [models.FieldCondition(key="index", match=models.MatchValue(value=key))]
    if allowed is not None:
        must.append(models.FieldCondition(key="id", match=models.MatchAny(any=allowed.tolist())))
    must_not: list[Any] | None = None
    if excluded is not None and len(excluded):
        among = models.MatchAny(any=excluded.tolist())
        must_not = [models.FieldCondition(key="id", match=among)]
    return models.Filter(must=must, must_not=must_not)


def put(
    server: QdrantServer, record: Record, key: str, ids: ArrayI64, vectors: ArrayF32
) -> Iterator[int]:
    """Write ``ids`` (N,) and ``vectors`` (N, D), a request at a time; the last id of each."""
    from qdrant_client import models

    rows = max(1, min(_ROWS_MOST, _VALUES_AT_ONCE // record.dim))
    for start in range(0, len(ids), rows):
        some = ids[start : start + rows].tolist()
        batch = models.Batch(
            ids=[point_id(key, own) for own in some],
            vectors=vectors[start : start + rows].tolist(),
            payloads=[{"index": key, "id": own} for own in some],
        )
        with asking():
            server.client.upsert(record.collection, batch, wait=True)
        yield some[-1]


def nearest_points(
    server: QdrantServer,
    record: Record,
    q: ArrayF32,
    n: int,
    filtered: Any,
    *,
    exact: bool,
    looked_at: int,
) -> tuple[ArrayI64, ArrayF32]:
    """(M,) ids and (M, D) vectors of the ``n`` nearest that the server proposes."""
    from qdrant_client import models

    with asking():
        found = server.client.query_points(
            record.collection,
            query=q.tolist(),
            limit=n,
            query_filter=filtered,
            search_params=models.SearchParams(exact=exact, hnsw_ef=max(looked_at, n)),
            with_payload=["id"],
            with_vectors=True,
            consistency=server.consistency,
        ).points
    ids = np.array([one.payload["id"] for one in found], dtype=np.int64)
    vectors = np.array([one.vector for one in found], dtype=np.float32)
    return ids, vectors.reshape(len(ids), record.dim)


def held(server: QdrantServer, record: Record, key: str, among: ArrayI64 | None = None) -> ArrayI64:
    """(N,) ids of a generation, ascending; only those in ``among``, if given."""
    parts: list[int] = []
    offset: Any = None
    while True:
        with asking():
            rows, offset = server.client.scroll(
                record.collection,
                scroll_filter=condition(key, allowed=among),
                limit=_PAGE,
                offset=offset,
                with_payload=["id"],
                consistency=server.consistency,
            )
        parts += [row.payload["id"] for row in rows]
        if offset is None:
            return np.sort(np.array(parts, dtype=np.int64))


def counted(server: QdrantServer, record: Record, key: str) -> int:
    """How many vectors a generation has."""
    with asking():
        found = server.client.count(record.collection, count_filter=condition(key), exact=True)
    return int(found.count)


def taken_away(server: QdrantServer, record: Record, key: str, ids: ArrayI64 | None = None) -> None:
    """Delete a generation, or these ids of it, wherever it is replicated."""
    from qdrant_client import models

    chosen = models.FilterSelector(filter=condition(key, allowed=ids))
    with asking():
        if server.client.collection_exists(record.collection):
            server.client.delete(record.collection, points_selector=chosen, wait=True)
