"""What is known of each index on a server: a record, replaced in one write.

Records lie in a collection of their own without vectors. The vectors of all indexes of an encoder
lie in one collection, as Qdrant advises for many tenants; which index and which of its generations
a vector belongs to is payload. A generation that no record names counts for nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

from ml.index.qdrant.server import QdrantServer, asking

_COLLECTION = "tessera-indexes"
_PAGE = 256  # records read at once; a hospital has some dozens
_NAMESPACE = uuid.UUID("5b1d31a9-3f0e-4a54-9f6b-3f2d3c1f8a50")  # of this program's point ids


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A filling under way: its generation, what it is filled from, and how far it came.

    Attributes:
        source: the caller's own words.
        done_until, count: the last id that was confirmed (None: none), and how many were.
    """

    generation: int
    source: str
    done_until: int | None = None
    count: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One index.

    Attributes:
        name, group: the index, and what it is dropped with. collection: where its vectors are.
        version, count, dim, tag, recall: as ``IndexStats`` has them.
        generation: of the vectors that count; 0: none yet. source: what it was filled from.
    """

    name: str
    group: str
    collection: str
    dim: int
    tag: str
    version: int = 0
    count: int = 0
    generation: int = 0
    recall: float = 1.0
    source: str = ""
    filling: Unfinished | None = field(default=None)

    def key(self, generation: int) -> str:
        """The payload of the vectors of one generation."""
        return f"{self.name}@{generation}"

    def keys_unnamed(self) -> list[str]:
        """Of the generations beside the one that counts: a process that died may have left them."""
        return [self.key(n) for n in (self.generation - 1, self.generation + 1) if n > 0]


def collection_of(tag: str, dim: int) -> str:
    """The collection of an encoder's vectors."""
    return f"tessera-{dim}-{hashlib.blake2b(tag.encode(), digest_size=8).hexdigest()}"


def point_id(key: str, own: int) -> str:
    """Of a vector in its collection: the same again when a filling is repeated."""
    return str(uuid.uuid5(_NAMESPACE, f"{key}/{own}"))


def record_read(server: QdrantServer, name: str) -> Record | None:
    """The record of an index, None if nothing was ever written."""
    with asking():
        if not server.client.collection_exists(_COLLECTION):
            return None
        found = server.client.retrieve(
            _COLLECTION, [_id(name)], with_payload=True, consistency=server.consistency
        )
    return _record(found[0].payload) if found else None


def record_write(server: QdrantServer, record: Record) -> None:
    """Replace it: from here on every reader sees what it says."""
    from qdrant_client import models

    with asking():
        if not server.client.collection_exists(_COLLECTION):
            server.client.create_collection(
                _COLLECTION,
                vectors_config={},
                replication_factor=server.replicas,
                write_consistency_factor=server.confirmations,
            )
        point = models.PointStruct(id=_id(record.name), vector={}, payload=asdict(record))
        server.client.upsert(_COLLECTION, [point], wait=True, ordering=models.WriteOrdering.STRONG)


def records_of(server: QdrantServer, group: str) -> list[Record]:
    """All of a group."""
    from qdrant_client import models

    found: list[Record] = []
    condition = models.FieldCondition(key="group", match=models.MatchValue(value=group))
    with asking():
        if not server.client.collection_exists(_COLLECTION):
            return []
        offset: Any = None
        while True:
            rows, offset = server.client.scroll(
                _COLLECTION,
                scroll_filter=models.Filter(must=[condition]),
                limit=_PAGE,
                offset=offset,
                with_payload=True,
                consistency=server.consistency,
            )
            found += [_record(row.payload) for row in rows]
            if offset is None:
                return found


def record_delete(server: QdrantServer, record: Record) -> None:
    """Forget an index; its vectors have gone before."""
    from qdrant_client import models

    with asking():
        server.client.delete(
            _COLLECTION,
            points_selector=models.PointIdsList(points=[_id(record.name)]),
            wait=True,
        )


def _id(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


def _record(payload: dict[str, Any]) -> Record:
    filling = payload.get("filling")
    return Record(**(payload | {"filling": Unfinished(**filling) if filling else None}))
