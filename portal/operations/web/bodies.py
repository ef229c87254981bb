"""Request bodies: small ones are received before Django is called, large ones are streamed."""

from __future__ import annotations

import asyncio
import io
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from concurrent.futures import CancelledError, Future
from typing import Any

from portal.core.errors import PortalError
from portal.labs.models import Membership, User

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

SMALL_BYTES = 2**20
"""Largest size of a body that is received before it takes a thread."""
READ_BYTES = 2**20  # of a large body at a time
TRANSFERS = 16  # concurrent large bodies of a process, each in a thread
PER_LAB, PER_PERSON = TRANSFERS // 2, TRANSFERS // 4


class ClientLeftError(Exception):
    """The client disconnected before its request was complete."""


class NoLengthError(Exception):
    """A large body has no Content-Length."""


class TooManyTransfersError(PortalError):
    """A user or lab is sending the maximum number of large bodies."""

    status, code, title = 429, "too-many-transfers", "Too many uploads at once"


class TransferTurns:
    """Counts of concurrent large bodies, by user and by lab. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def take(self, keys: dict[Hashable, int]) -> None:
        """Count one more under each key.

        Raises:
            TooManyTransfersError: a key has reached its limit.
        """
        with self._lock:
            if any(self._counts[key] >= limit for key, limit in keys.items()):
                raise TooManyTransfersError(
                    "You or your lab are sending as many files as are accepted at once. "
                    "Try again when one of them has arrived.",
                    details={"retry_after_s": 5},
                )
            self._counts.update(keys.keys())

    def give_back(self, keys: dict[Hashable, int]) -> None:
        """Count one less under each key."""
        with self._lock:
            self._counts.subtract(keys.keys())
            self._counts += Counter()  # drops zeros


TURNS = TransferTurns()


class StreamedBody:
    """A large body, read in a thread while the event loop receives it.

    The first read counts it for the user that ``request`` belongs to.
    """

    request: Any = None

    def __init__(self, receive: Receive) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._part = memoryview(b"")
        self._prefetched: Future[bytes] | None = None
        self._has_more, self._is_over = True, False
        self._keys: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes; fewer before the end or a failure, all if ``size`` is negative.

        Raises:
            TooManyTransfersError: the user's limit is reached.
            ConnectionAbortedError: the client has disconnected or was too slow. Received bytes are
                returned first.
        """
        if self._prefetched is None:
            self._begin()
        parts: list[bytes | memoryview] = []
        bytes_left = size
        try:
            while bytes_left and (self._part or self._next()):
                part = self._part if size < 0 else self._part[:bytes_left]
                self._part = self._part[len(part) :]
                parts.append(part)
                bytes_left -= len(part) if size > 0 else 0
        except ConnectionAbortedError:
            if not parts or size < 0:
                raise
        return b"".join(parts)

    def readline(self, limit: int = -1) -> bytes:
        """Next block: Django reads lines only to skip to the end of a form."""
        return self.read(READ_BYTES)

    def close(self) -> None:
        """Stop waiting for bytes. Thread-safe."""
        with self._lock:
            self._is_over = True
            if self._prefetched is not None:
                self._prefetched.cancel()
            keys, self._keys = self._keys, {}
        if keys:
            TURNS.give_back(keys)

    def _begin(self) -> None:
        keys = _keys_of(getattr(self.request, "user", None))
        TURNS.take(keys)
        self._keys = keys
        self._fetch()

    def _fetch(self) -> None:
        with self._lock:
            if self._is_over:
                raise ConnectionAbortedError("the request has ended")
            self._prefetched = asyncio.run_coroutine_threadsafe(self._next_bytes(), self._loop)

    def _next(self) -> bool:
        """Wait for more bytes; False at the end."""
        if self._prefetched is None:
            return False
        try:
            part = self._prefetched.result()
        except CancelledError:
            raise ConnectionAbortedError("the request has ended") from None
        if not part and self._has_more:
            raise ConnectionAbortedError("the client has left")
        self._part = memoryview(part)
        if self._has_more:
            self._fetch()
        else:
            self._prefetched = Future()
            self._prefetched.set_result(b"")
        return bool(part)

    async def _next_bytes(self) -> bytes:
        """Next bytes; empty if the client disconnected."""
        parts, size = [], 0
        while self._has_more and size < READ_BYTES:
            message = await self._receive()
            if message["type"] != "http.request":
                break
            parts.append(message["body"])
            size += len(message["body"])
            self._has_more = message["more_body"]
        return b"".join(parts)


def _keys_of(user: Any) -> dict[Hashable, int]:
    """Limits that a body counts towards, by user and lab; guests share one."""
    if not isinstance(user, User):
        return {"nobody": PER_PERSON}
    keys: dict[Hashable, int] = {("person", user.pk): PER_PERSON}
    for lab in Membership.objects.of(user).values_list("lab_id", flat=True):
        keys["lab", lab] = PER_LAB
    return keys


async def body_of(scope: Scope, receive: Receive) -> io.BytesIO | StreamedBody:
    """Body of a request, complete if it is small. A chunked one gets its length as a header.

    Raises:
        ClientLeftError
        NoLengthError: it is chunked and larger than ``SMALL_BYTES``.
    """
    fields = dict(scope["headers"])
    is_chunked = b"transfer-encoding" in fields
    length = int(fields.get(b"content-length", b"0"))
    if length > SMALL_BYTES:
        return StreamedBody(receive)
    received, has_more = bytearray(), is_chunked or length > 0
    while has_more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientLeftError
        received += message["body"]
        has_more = message["more_body"]
        if len(received) > SMALL_BYTES:
            raise NoLengthError
    if is_chunked:
        headers = [header for header in scope["headers"] if header[0] != b"transfer-encoding"]
        scope["headers"] = [*headers, (b"content-length", b"%d" % len(received))]
    return io.BytesIO(received)
