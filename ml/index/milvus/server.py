"""Connection to Milvus: one client per process and server."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ml.errors import IndexUnreachableError
from ml.extras import require_extra

_CONNECT_S = 2.0  # also the timeout of requests about a collection, with which a search begins
_NOT_FOUND = 100  # Milvus' error code of a missing collection


@dataclass(frozen=True, slots=True)
class MilvusServer:
    """A server, or the proxy of a cluster.

    Attributes:
        url: Such as ``http://host:19530``; the path names a database other than the default.
        token: ``user:password`` or an API key; empty for none.
        shards: Channels for the writes of a collection.
        replicas: Query nodes that keep each vector in memory.
        search_s, write_s: Timeouts of searches and writes, in seconds.
    """

    url: str
    token: str = ""
    shards: int = 1
    replicas: int = 1
    search_s: float = 10.0
    write_s: float = 300.0

    def call(self, method: str, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Call a method of ``pymilvus.MilvusClient``.

        Raises:
            IndexUnreachableError: The server does not answer, or reports an error.
        """
        require_extra("pymilvus", extra="milvus")
        with translated_errors():
            client = _client(self, os.getpid())
            return getattr(client, method)(*args, timeout=timeout or self.write_s, **kwargs)

    def describe(self, name: str) -> dict[str, Any] | None:
        """Describe a collection by its name or an alias; None if there is none.

        Raises:
            IndexUnreachableError: The server does not answer.
        """
        try:
            description: dict[str, Any] = self.call("describe_collection", name, timeout=_CONNECT_S)
        except IndexUnreachableError as error:
            if getattr(error.__cause__, "code", None) == _NOT_FOUND:
                return None
            raise
        return description

    def ping(self) -> bool:
        """Return True if the server answers.

        Raises:
            IndexUnreachableError: The server does not answer.
        """
        return self.call("list_collections", timeout=_CONNECT_S) is not None


@cache
def _client(server: MilvusServer, _pid: int) -> Any:
    """Client of this process, as a connection does not survive a fork."""
    from pymilvus import MilvusClient

    # Errors are raised and logged by the caller.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    return MilvusClient(server.url, token=server.token, timeout=_CONNECT_S, dedicated=True)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate errors of the client.

    Raises:
        IndexUnreachableError: The server does not answer, or reports an error.
    """
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except (MilvusException, RpcError, OSError) as error:
        raise IndexUnreachableError(str(error).strip().partition("\n")[0]) from error
