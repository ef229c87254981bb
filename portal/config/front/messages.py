"""Requests as they come in, and the answers the front gives by itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

Fields = list[tuple[bytes, bytes]]
PEER, PIECE = b"x-tessera-peer", b"x-tessera-piece"
"""Tell the API who is connected to the front, and about a body that the front writes itself; see
``portal.config.peer``.
"""
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding",
     b"upgrade", b"expect", b"content-length"}
)  # fmt: skip


class BodyError(Exception):
    """The client went away or sends too slowly."""


class Body:
    """What follows the head, as it comes. ``length`` is None if the client did not say."""

    def __init__(self, length: int | None, *, on_read: Callable[[], None]) -> None:
        self.length = length
        self.received = 0
        self.held = 0
        self.is_complete = False
        self._failed = False
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._on_read = on_read

    def feed(self, data: bytes) -> None:
        """A part arrived."""
        self._chunks.append(data)
        self.held += len(data)
        self.received += len(data)
        self._changed.set()

    def finish(self) -> None:
        """All arrived."""
        self.is_complete = True
        self._changed.set()

    def fail(self) -> None:
        """No more will arrive."""
        self._failed = True
        self._changed.set()

    async def gathered(self, enough_bytes: int) -> bool:
        """Wait until all is there (True), or ``enough_bytes`` of it (False)."""
        while not self.is_complete and self.held < enough_bytes:
            await self._wait()
        return self.is_complete

    async def read(self) -> bytes:
        """The next part; empty at the end."""
        while not self._chunks and not self.is_complete:
            await self._wait()
        data = self.taken()
        self._on_read()
        return data

    def taken(self) -> bytes:
        """Take out what is held so far."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self.held = 0
        return data

    async def _wait(self) -> None:
        if self._failed:
            raise BodyError
        self._changed.clear()
        await self._changed.wait()


@dataclass(slots=True)
class Request:
    """One request; ``fields``: names in lower case, values as the client sent them."""

    method: bytes
    target: bytes
    version: str
    fields: Fields
    keep_alive: bool
    body: Body
    began: float

    def field(self, name: bytes) -> str:
        """A header's text, empty if it was not sent; of several the last."""
        found = ""
        for key, value in self.fields:
            if key == name:
                found = value.decode("latin-1")
        return found

    def has_body(self) -> bool:
        """Whether one was announced."""
        return bool(self.field(b"content-length") or self.field(b"transfer-encoding"))

    def is_tile(self) -> bool:
        """Whether the front answers it by itself."""
        return self.target.startswith(b"/tiles/") and self.method in (b"GET", b"HEAD")


def forwarded_head(request: Request, peer: str, *, is_whole: bool, said: str = "") -> bytes:
    """The head for the API: the client's, without what concerns one connection only.

    Names that begin like ours, or that CGI cannot tell from another, never pass.

    Args:
        said: what to say of a body that stays here, instead of sending it.
    """
    lines = [b"%s %s HTTP/%s" % (request.method, request.target, request.version.encode())]
    for name, value in request.fields:
        if name not in _HOP_BY_HOP and not name.startswith(b"x-tessera-") and b"_" not in name:
            lines.append(b"%s: %s" % (name, value))
    lines += [b"%s: %s" % (PEER, peer.encode()), b"connection: close"]
    if said:
        lines += [b"%s: %s" % (PIECE, said.encode()), b"content-length: 0"]
    elif is_whole and (request.body.received or request.method in (b"POST", b"PUT", b"PATCH")):
        lines.append(b"content-length: %d" % request.body.received)
    elif not is_whole and request.body.length is not None:
        lines.append(b"content-length: %d" % request.body.length)
    elif not is_whole:
        lines.append(b"transfer-encoding: chunked")
    return b"\r\n".join([*lines, b"", b""])


def head(status: str, fields: list[tuple[str, str]], *, keep_alive: bool) -> bytes:
    """Status line and headers of an answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields)]
    if not keep_alive:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def plain(status: str, text: str) -> bytes:
    """A whole answer in one line of text, after which the connection ends."""
    body = (text + "\n").encode()
    fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    if status.startswith("503"):
        fields.append(("Retry-After", "5"))
    return head(status, fields, keep_alive=False) + body
