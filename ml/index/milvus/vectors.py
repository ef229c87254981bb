"""Writing, searching, counting and deleting the vectors of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ml.index.milvus.server import MilvusServer, translated_errors
from ml.types import ArrayF32, ArrayF64, ArrayI64

MAX_CANDIDATES = 16_384
"""Milvus' largest result of one search or query."""
MAX_LISTED = 1_000
"""Ids in a filter expression: Milvus parses some 30 a millisecond."""
_MAX_REQUEST_VALUES = 1_000_000  # 4 MB; a proxy takes 64
_MAX_REQUEST_ROWS = 5_000
_PAGE = 8_192  # ids per page
_GRAPH = {"M": 16, "efConstruction": 200}


def upsert(
    server: MilvusServer, collection: str, ids: ArrayI64, vectors: ArrayF32
) -> Iterator[ArrayI64]:
    """Write ``ids`` (N,) and ``vectors`` (N, D); yield the ids of each request.

    Repeated requests change nothing.
    """
    rows = max(1, min(_MAX_REQUEST_ROWS, _MAX_REQUEST_VALUES // vectors.shape[1]))
    for start in range(0, len(ids), rows):
        batch_ids = ids[start : start + rows]
        pairs = zip(batch_ids.tolist(), vectors[start : start + rows].tolist(), strict=True)
        data = [{"id": number, "vector": vector} for number, vector in pairs]
        server.call("upsert", collection, data)
        yield batch_ids


def delete(server: MilvusServer, collection: str, ids: ArrayI64) -> None:
    """Delete ``ids`` (N,)."""
    for start in range(0, len(ids), MAX_LISTED):
        server.call("delete", collection, ids=ids[start : start + MAX_LISTED].tolist())


def set_index(server: MilvusServer, collection: str, kind: str) -> None:
    """Replace the index of a collection: "flat" (exact) or "hnsw"."""
    from pymilvus import MilvusClient

    if server.call("list_indexes", collection):
        server.call("release_collection", collection)
        server.call("drop_index", collection, "vector")
    parameters = MilvusClient.prepare_index_params()
    parameters.add_index(
        "vector",
        index_type=kind.upper(),
        metric_type="L2",
        params=_GRAPH if kind == "hnsw" else {},
    )
    server.call("create_index", collection, parameters)
    server.call("load_collection", collection, replica_number=server.replicas)


def filter_expression(*, allowed: ArrayI64 | None = None, excluded: ArrayI64 | None = None) -> str:
    """Filter expression that permits and excludes ids."""
    parts = [] if allowed is None else [f"id in {allowed.tolist()}"]
    if excluded is not None and len(excluded):
        parts.append(f"id not in {excluded.tolist()}")
    return " and ".join(parts)


def candidates(
    server: MilvusServer,
    collection: str,
    q: ArrayF32,
    n: int,
    expression: str,
    *,
    ef: int,
    is_edited: bool,
) -> tuple[ArrayI64, ArrayF64]:
    """Ids (M,) int64 and rounded distances (M,) float64 of the ``n`` nearest by the server.

    Args:
        ef: Vectors of the HNSW graph that a search visits.
    """
    (hits,) = server.call(
        "search",
        collection,
        data=[q.tolist()],
        limit=n,
        filter=expression,
        search_params={"params": {"ef": max(ef, n)}},
        consistency_level=_consistency(is_edited),
        timeout=server.search_s,
    )
    ids = np.array([hit["id"] for hit in hits], dtype=np.int64)
    squared = np.array([hit["distance"] for hit in hits], dtype=np.float64)
    return ids, np.sqrt(np.maximum(squared, 0.0))


def vectors_of(
    server: MilvusServer, collection: str, ids: ArrayI64, dim: int, *, is_edited: bool = True
) -> tuple[ArrayI64, ArrayF32]:
    """Existing ids (M,) of ``ids`` (N,), ascending, and their vectors (M, D)."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(ids), MAX_LISTED):
        batch_ids = ids[start : start + MAX_LISTED]
        rows += server.call(
            "query",
            collection,
            filter=filter_expression(allowed=batch_ids),
            output_fields=["id", "vector"],
            consistency_level=_consistency(is_edited),
            timeout=server.search_s,
        )
    stored_ids = np.array([row["id"] for row in rows], dtype=np.int64)
    vectors = np.array([row["vector"] for row in rows], dtype=np.float32).reshape(len(rows), dim)
    order = np.argsort(stored_ids)
    return stored_ids[order], vectors[order]


def all_ids(server: MilvusServer, collection: str) -> ArrayI64:
    """All ids (N,) int64, ascending."""
    options: dict[str, Any] = {
        "batch_size": _PAGE,
        "output_fields": ["id"],
        "consistency_level": "Strong",
    }
    # An iterator reads the state at its first request, at any consistency level. A strong read
    # before it waits until every write is visible.
    count_vectors(server, collection)
    pages, parts = server.call("query_iterator", collection, **options), list[int]()
    with translated_errors():
        while page := pages.next():
            parts += [row["id"] for row in page]
        pages.close()
    return np.sort(np.array(parts, dtype=np.int64))


def count_vectors(server: MilvusServer, collection: str) -> int:
    """Number of vectors."""
    (row,) = server.call(
        "query", collection, filter="", output_fields=["count(*)"], consistency_level="Strong"
    )
    return int(row["count(*)"])


def _consistency(is_edited: bool) -> str:
    """Consistency level of a read.

    A strong read waits up to a time tick of 200 ms until all nodes have seen all writes. A
    collection that was only filled is complete on each node once it is loaded.
    """
    return "Strong" if is_edited else "Eventually"
