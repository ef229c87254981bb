"""Where Qdrant is, and how it is asked: one client per process and server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ml.errors import IndexUnreachableError
from ml.extras import require_extra

LOCAL = "folder:"  # the client's own store in a folder, held by one process at a time
MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class QdrantServer:
    """A server, or any node of a cluster.

    Attributes:
        url: as ``http://host:6333``. api_key: what the server asks for; empty: nothing.
        shards: parts that a collection is cut into, so that several nodes hold it.
        replicas: nodes that hold each part; more than half of them confirm a write.
        timeout_s: of one request.
    """

    url: str
    api_key: str = ""
    shards: int = 1
    replicas: int = 1
    timeout_s: float = 30.0

    @property
    def client(self) -> Any:
        """The process' own client: a connection does not outlive a fork."""
        require_extra("qdrant_client", extra="qdrant")
        return _client(self, os.getpid())

    def answers(self) -> bool:
        """True if the server answers.

        Raises:
            IndexUnreachableError: it does not.
        """
        with asking():
            return self.client.get_collections() is not None

    @property
    def consistency(self) -> Any:
        """Of a read: what more than half of the replicas say, where there are several."""
        return "majority" if self.replicas > 1 else None

    @property
    def confirmations(self) -> int:
        """Replicas that have taken a write before it counts."""
        return self.replicas // 2 + 1


@cache
def _client(server: QdrantServer, _pid: int) -> Any:
    from qdrant_client import QdrantClient

    if server.url == MEMORY:
        return QdrantClient(location=MEMORY)
    with asking():
        if server.url.startswith(LOCAL):
            # SQLite refuses other threads than its own, and threads take turns here.
            folder = server.url.removeprefix(LOCAL)
            return QdrantClient(path=folder, force_disable_check_same_thread=True)
        return QdrantClient(
            url=server.url, api_key=server.api_key or None, timeout=int(server.timeout_s)
        )


@contextmanager
def asking() -> Iterator[None]:
    """Translate what goes wrong between here and the server.

    Raises:
        IndexUnreachableError: no answer, or one that says it cannot.
    """
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except (ApiException, HTTPError, OSError, RuntimeError) as error:  # a folder in use
        raise IndexUnreachableError(str(error).strip().partition("\n")[0]) from error
