"""One client's connection: HTTP/1.1 with a time limit for everything the client has to do.

The parser is llhttp (by httptools). What it lets through is taken apart and written again for the
API, so the two never read a request differently.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httptools

from portal.archive.tiles.permits import Credential
from portal.archive.tiles.server import TILES, Answer, TileRequest
from portal.config.front.live import LiveQuestion, live_question
from portal.config.front.messages import Body, Fields, Request, head, plain
from portal.config.front.relay import relay
from portal.config.front.shared import Front

LINGER_S: Final = 2.0
"""After an early answer the rest of a body is read and dropped, or the client may not see it."""


class Connection(asyncio.Protocol):
    """Reads requests, one after the other, and answers them."""

    def __init__(self, front: Front) -> None:
        self.front, self.limits = front, front.limits
        self.peer = ""
        self.deadline: float | None = None
        self.answered = ""
        self._parser = httptools.HttpRequestParser(self)
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._in_head = True
        self._head_bytes = 0
        self._deaf = False  # what still comes in is dropped
        self._target, self._fields = b"", Fields()
        self._began = 0.0

    # --- asyncio -----------------------------------------------------------------------------
    def connection_made(self, transport: Any) -> None:
        """A client came."""
        self.transport: Any = transport
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        transport.set_write_buffer_limits(high=self.limits.write_bytes)
        self.deadline = self.front.now() + self.limits.head_s
        if not self.front.admit(self):
            self.refuse("503 Service Unavailable", "Too many connections. Try again in a moment.")

    def connection_lost(self, error: Exception | None) -> None:
        """It went."""
        self.front.leave(self)
        self.deadline, self._deaf = None, True
        self._writable.set()
        if self._request is not None:
            self._request.body.fail()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._deaf:
            return
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._deaf = True  # no other protocol is spoken here; the request itself is answered
        except httptools.HttpParserError:
            self.refuse("400 Bad Request", "This is not a valid HTTP request.")
            return
        if self._in_head and self._head_bytes > self.limits.head_bytes:
            self.refuse("431 Request Header Fields Too Large", "The headers are too long.")

    def eof_received(self) -> bool:
        """The client sends no more; it may still read its answer."""
        return self._request is not None and self._request.body.is_complete

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer comes."""
        self._writable.clear()
        self.deadline = self.front.now() + self.limits.write_s

    def resume_writing(self) -> None:
        """It caught up."""
        self._writable.set()
        self.deadline = None

    # --- the parser --------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        """A request begins. If the last is unanswered, the connection ends after its answer."""
        if self._request is not None:
            self._deaf, self._request.keep_alive = True, False
            return
        self._target, self._fields = b"", Fields()
        self._in_head = True
        self._began = self.front.now()
        self.deadline = self._began + self.limits.head_s

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete."""
        if self._deaf:
            return
        self._in_head, self._head_bytes = False, 0
        fields = dict(self._fields)
        if not self._target.startswith(b"/"):
            self.refuse("400 Bad Request", "The target must be a path.")
            return
        if sum(name == b"host" for name, _ in self._fields) > 1:
            self.refuse("400 Bad Request", "Expected exactly one Host header.")
            return
        length = int(fields[b"content-length"]) if b"content-length" in fields else None
        has_body = length or b"transfer-encoding" in fields
        if has_body and self._parser.should_upgrade():  # the parser takes no body then
            self.refuse(
                "400 Bad Request", "Send a body without Upgrade; only HTTP/1.1 is supported."
            )
            return
        self._request = Request(
            method=self._parser.get_method(),
            target=self._target,
            version=self._parser.get_http_version(),
            fields=self._fields,
            keep_alive=self._parser.should_keep_alive(),
            body=Body(length, on_read=self._body_was_read),
            began=self._began,
        )
        self.deadline = self.front.now() + self.limits.gap_s if has_body else None
        if has_body and fields.get(b"expect", b"").lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._request.is_tile():
            return
        question = live_question(self._request)
        if question is not None:
            self._start(self._live(self._request, question))
        else:
            self._start(relay(self.front, self, self._request))

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        if self._deaf or self._request is None:
            return
        body, now = self._request.body, self.front.now()
        body.feed(data)
        if body.received < (now - self._began - self.limits.gap_s) * self.limits.rate_bytes_s:
            body.fail()
        self.deadline = now + self.limits.gap_s
        if body.held > self.limits.buffer_bytes:
            self.deadline = None  # it is the API's turn now
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._request is None or self._request.body.is_complete:
            return
        self.deadline = None
        self._request.body.finish()
        if self._request.is_tile():
            self._tile(self._request)

    def take_over(self) -> tuple[int, bytes]:
        """The socket, and what was read of the body: the rest is read by somebody else."""
        self.transport.pause_reading()
        self.deadline = None
        early = b"" if self._request is None else self._request.body.taken()
        return self.transport.get_extra_info("socket").fileno(), early

    def taken_over(self) -> None:
        """All of the body was read by somebody else: another request may follow."""
        self._parser = httptools.HttpRequestParser(self)
        if self._request is not None:
            self._request.body.finish()

    # --- answers -----------------------------------------------------------------------------
    def write(self, data: bytes) -> None:
        """Part of an answer."""
        if not self.transport.is_closing():
            self.transport.write(data)

    async def drained(self) -> None:
        """Wait until the client has taken what it was sent, or most of it."""
        await self._writable.wait()
        if self.transport.is_closing():
            raise ConnectionResetError

    def done(self, status: str) -> None:
        """The answer is written: wait for the next request, or end."""
        request, self._request, self._task = self._request, None, None
        if request is None:
            return
        self.front.log(self, request, status)
        if not request.body.is_complete:
            self._end()
        elif self._deaf or not request.keep_alive or self.front.is_stopping:
            self.transport.close()
        else:
            self._in_head, self._head_bytes = True, 0
            self.deadline = self.front.now() + self.limits.idle_s
            self.transport.resume_reading()

    def refuse(self, status: str, text: str) -> None:
        """Say what is wrong, and end."""
        self.write(plain(status, text))
        if self._request is not None:
            self.front.log(self, self._request, status)
            self._request.body.fail()
        self._request = None
        self._end()

    def abort(self) -> None:
        """End at once: the answer cannot be completed, and the client must notice."""
        self.transport.abort()

    def expire(self) -> None:
        """The deadline has passed."""
        self.deadline = None
        if self._deaf or not self._writable.is_set():
            self.transport.abort()
        elif self._request is not None:
            self._request.body.fail()
        elif self._head_bytes:
            self.refuse("408 Request Timeout", "The request did not arrive in time.")
        else:
            self.transport.close()

    def stop(self) -> None:
        """The portal stops: an idle connection ends, a busy one after its answer."""
        if self._request is None:
            self.transport.close()

    def _end(self) -> None:
        """Let the client read what was written, without waiting for what it still sends."""
        self._deaf = True
        if self.transport.is_closing():
            return
        self.deadline = self.front.now() + LINGER_S
        self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _body_was_read(self) -> None:
        if self._request is not None and not self._request.body.is_complete:
            self.deadline = self.front.now() + self.limits.gap_s
            self.transport.resume_reading()

    def _start(self, work: Any) -> None:
        self._task = asyncio.get_running_loop().create_task(work)

    def _tile(self, request: Request) -> None:
        asked = TileRequest(
            request.method.decode(),
            request.target.partition(b"?")[0].decode("latin-1"),
            Credential(request.field(b"cookie"), request.field(b"authorization")),
            request.field(b"if-none-match"),
        )
        ready = TILES.at_once(asked)
        if ready is None:
            self._start(self._tile_later(request, asked))
        else:
            self._send(request, ready)

    async def _tile_later(self, request: Request, asked: TileRequest) -> None:
        self._send(request, await self.front.in_thread(TILES.answer, asked))

    async def _live(self, request: Request, question: LiveQuestion) -> None:
        ready = await self.front.live.answer(question)
        if ready is None:
            await relay(self.front, self, request)
        else:
            self._send(request, ready)

    def _send(self, request: Request, answer: Answer) -> None:
        status, fields, body = answer
        sent = head(status, fields, keep_alive=request.keep_alive)
        self.write(sent + body if request.method == b"GET" else sent)
        self.done(status)
