"""uvicorn's HTTP/1.1 protocol with limits of time and size, and unambiguous requests.

The parser is llhttp (by httptools). ``docs/adr/0001-uvicorn.md`` lists the gaps of uvicorn's own
protocol: trailers join the headers, heads have no limit, and slow clients are never disconnected.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LINGER_S: Final = 2.0
LINGER_BYTES: Final = 8 * 2**20
"""Bytes of a body that are read and dropped after an early response, so that the client sees it."""
_ONCE = frozenset({b"host", b"content-length", b"transfer-encoding"})
IDLE, HEAD, BODY, COMPLETE = "idle", "head", "body", "complete"


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one web process.

    Attributes:
        head_s: From the connection, or the first byte of a request, to the end of its headers.
        idle_s: Idle time of a kept-alive connection.
        body_s: Time that a body may arrive at less than ``body_bytes_s``, in total.
        body_bytes_s: Lowest rate of a body. Faster parts make up for slower ones, by ``body_s``
            at most.
        write_s: Time after which a client that reads nothing of its response is disconnected.
        head_bytes: Size of request line and headers, of trailers, and of a chunk's own line.
        chunks: Number of chunks of a body without a length, which is small.
        connections: Open connections.
        per_address: From one address (0: no limit).
    """

    head_s: float = 15
    idle_s: float = 60
    body_s: float = 20
    body_bytes_s: float = 8192
    write_s: float = 60
    head_bytes: int = 32 * 1024
    chunks: int = 4096
    connections: int = 4000
    per_address: int = 500


class LimitedProtocol(HttpToolsProtocol):
    """Connection of one client. ``check`` is called about once a second."""

    limits = ClientLimits()
    by_address: ClassVar[Counter[str]] = Counter()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._state = HEAD
        self._since = time.monotonic()
        self._drops_data = False  # further data is dropped
        self._ends_at: float | None = None
        self._pending_bytes = 0  # since the parser's last callback
        self._body_bytes, self._chunks = 0, 0  # bytes since the last check
        self._credit_s = self.limits.body_s
        self._unread_s = 0.0
        self._dropped_bytes = 0

    # --- asyncio ---------------------------------------------------------------------------------
    def connection_made(self, transport: Any) -> None:
        """Count the connection; refuse it above the limit."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self.by_address[self._address] += 1
        allowed = self.limits.per_address
        is_greedy = allowed and self.by_address[self._address] > allowed
        if is_greedy or len(self.connections) > self.limits.connections:
            self._refuse(b"503 Service Unavailable", "Too many connections. Try again in a moment.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the count."""
        self.by_address[self._address] -= 1
        if not self.by_address[self._address]:
            del self.by_address[self._address]
        self._drops_data = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed data to the parser within the limits."""
        if self._drops_data:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > LINGER_BYTES:
                self.transport.abort()
            return
        if self._state is IDLE:
            self._state, self._since = HEAD, time.monotonic()
        self._pending_bytes += len(data)
        super().data_received(data)
        if not self._drops_data and self._pending_bytes > self.limits.head_bytes:
            self._refuse(b"431 Request Header Fields Too Large", "The headers are too long.")

    def check(self, now: float) -> None:
        """Close the connection if a limit of time is exceeded."""
        limits = self.limits
        if self._ends_at is not None:
            if now > self._ends_at:
                self.transport.abort()
        elif self.flow.write_paused:
            self._unread_s += 1
            if self._unread_s > limits.write_s:
                self.transport.abort()
        elif self._state is HEAD:
            if now - self._since > limits.head_s:
                self._time_out()
        elif self._state is BODY and not self.flow.read_paused:
            earned_s = self._body_bytes / limits.body_bytes_s
            self._credit_s = min(limits.body_s, self._credit_s + earned_s - 1)
            self._body_bytes = 0
            if self._credit_s < 0:
                self._time_out()

    def resume_writing(self) -> None:
        """Record that the client has read most of the sent data."""
        self._unread_s = 0.0
        super().resume_writing()

    # --- the parser ------------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        """Begin a request; a pipelined one ends the connection after the present response."""
        if self._state is COMPLETE:
            self._drops_data, self.cycle.keep_alive = True, False
        if self._drops_data:
            return
        self._state = HEAD
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Add a part of the request's target."""
        if not self._drops_data:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; drop trailers and names that are ambiguous in CGI."""
        if not self._drops_data and self._state is HEAD and b"_" not in name:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request unless it is ambiguous."""
        if self._drops_data:
            return
        self._pending_bytes = self._body_bytes = self._chunks = 0
        self._credit_s = self.limits.body_s
        problem = self._ambiguity()
        if problem:
            self._refuse(b"400 Bad Request", problem)
            return
        self._state = BODY
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Count the parts of a body."""
        self._chunks += 1
        if self._chunks > self.limits.chunks and not self._drops_data:
            self._refuse(b"413 Content Too Large", "The body comes in too many chunks.")

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        if not self._drops_data:
            self._pending_bytes = 0
            self._body_bytes += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request; if it was answered already, the next may follow."""
        if self._drops_data:
            return
        self._pending_bytes = 0
        self._state = IDLE if self.cycle.response_complete else COMPLETE
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End the connection if the rest of a body would only be dropped."""
        if self._state is BODY:
            self._end()
        else:
            self._state = IDLE
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP, unless a response has begun."""
        if not self._drops_data:
            self._refuse(b"400 Bad Request", "This is not a valid request.")

    def _ambiguity(self) -> str:
        """Reason why servers may parse this request differently; empty if none."""
        fields: dict[bytes, bytes] = {}
        for name, value in self.headers:
            if name in _ONCE and name in fields:
                return f"Expected one {name.decode()} header, got several."
            fields[name] = value.strip()
        if not self.url.startswith(b"/") or not self.url.isascii():
            return "The target must be a path in ASCII characters."
        encoding = fields.get(b"transfer-encoding", b"")
        if encoding and (encoding.lower() != b"chunked" or self.parser.get_http_version() != "1.1"):
            return "Transfer-Encoding: only chunked is supported, in HTTP/1.1."
        has_body = encoding or fields.get(b"content-length", b"0") != b"0"
        if has_body and self.parser.get_method() in (b"GET", b"HEAD"):
            return "Send GET and HEAD without a body."
        if has_body and self.parser.should_upgrade():  # the parser ignores the body then
            return "Send a body without Upgrade: no other protocol is supported."
        return ""

    # --- the end ---------------------------------------------------------------------------------
    def _time_out(self) -> None:
        if self._state is HEAD and not self._pending_bytes:
            self.transport.close()
        else:
            self._refuse(b"408 Request Timeout", "The request did not arrive in time.")

    def _refuse(self, status: bytes, text: str) -> None:
        """Answer without the application and close; the application sees a disconnect."""
        is_open = self.cycle is not None and not self.cycle.response_complete
        if is_open:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if is_open and self.cycle.response_started:
            self.transport.abort()
            return
        body = text.encode() + b"\n"
        self.transport.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
            b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nRetry-After: 5\r\n"
            b"Connection: close\r\n\r\n%s" % (status, len(body), body)
        )
        self._end()

    def _end(self) -> None:
        """Let the client read the response, without waiting for the rest of its request."""
        self._drops_data = True
        self._ends_at = time.monotonic() + LINGER_S
        if not self.transport.is_closing() and self.transport.can_write_eof():
            self.transport.write_eof()
