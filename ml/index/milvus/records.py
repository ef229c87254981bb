"""Names and states of the indexes on a server.

Each generation of an index is a collection, so that an index is deleted as a whole, and is exact or
approximate by its size. An alias names the generation that is searched, so that all readers change
to a new one at the same time. Constant values are in the description of the collection, its state
in its properties.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from ml.index.milvus.server import MilvusServer

_PROPERTY = "tessera.state"


@dataclass(frozen=True, slots=True)
class State:
    """State of a collection during filling and editing.

    Attributes:
        version, count, recall, kind: See ``IndexStats``.
        done_until: The last id confirmed by the server during filling; None for none.
        is_edited: True if it was written to after it was filled.
    """

    version: int = 0
    count: int = 0
    recall: float = 1.0
    kind: str = "empty"
    done_until: int | None = None
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """One generation of an index.

    Attributes:
        collection: Name; empty if no generation was finished yet.
        generation: Number from 1; 0 if none was finished yet.
        dim, tag: See ``IndexStats``.
        source: Source of the vectors.
    """

    collection: str
    generation: int
    dim: int
    tag: str
    source: str
    state: State


def alias_of(name: str) -> str:
    """Alias of an index: letters, digits and underscores only, as Milvus requires."""
    return "tessera_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def read_record(server: MilvusServer, name: str) -> Record | None:
    """Read the record of a collection by its name or alias; None if there is none."""
    stored = server.describe(name)
    if stored is None:
        return None
    collection = stored["collection_name"]
    description = json.loads(stored["description"])
    state = State(**json.loads(stored["properties"].get(_PROPERTY, "{}")))
    return Record(collection, int(collection.rpartition("_")[2]), state=state, **description)


def create_collection(server: MilvusServer, record: Record) -> None:
    """Create the empty collection of a record."""
    from pymilvus import DataType, MilvusClient

    description = {"dim": record.dim, "tag": record.tag, "source": record.source}
    schema = MilvusClient.create_schema(auto_id=False, description=json.dumps(description))
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=record.dim)
    server.call("create_collection", record.collection, schema=schema, num_shards=server.shards)


def write_state(server: MilvusServer, collection: str, state: State) -> None:
    """Replace the state of a collection in one write."""
    properties = {_PROPERTY: json.dumps(asdict(state))}
    server.call("alter_collection_properties", collection, properties)


def drop_generations(server: MilvusServer, alias: str, *, keep: int = 0) -> None:
    """Delete all generations of an index except ``keep``."""
    for name in server.call("list_collections"):
        index, _, generation = name.rpartition("_")
        if index == alias and generation != str(keep):
            server.call("drop_collection", name)
