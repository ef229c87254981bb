"""A request to the API processes and its answer back, over a UNIX socket."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import httptools

from portal.archive.services.transfers.held import Allowed, Held
from portal.config.front.messages import PIECE, BodyError, Fields, Request, forwarded_head
from portal.config.front.pieces import landing_of, transfer_named
from portal.config.front.shared import Client, Front
from portal.config.front.turns import FullError
from portal.core.http.files import FILE_HEADER

logger = logging.getLogger(__name__)
READ_BYTES = 256 * 1024  # at a time: few turns of the loop, little memory per connection
_NOT_PASSED_ON = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})
_FILE = FILE_HEADER.lower().encode()
_BODILESS = frozenset({204, 304})


async def relay(front: Front, connection: Client, request: Request) -> None:
    """Answer one request through the API."""
    try:
        is_whole = await request.body.gathered(front.limits.buffer_bytes)
        transfer = "" if is_whole else transfer_named(request)
        if transfer:
            answer = await _land(front, connection, request, transfer)
        else:
            answer = await _asked(front, connection, request, is_whole=is_whole)
        if answer.file:
            await _send_file(front, connection, answer.file)
    except BodyError:
        connection.refuse("408 Request Timeout", "The request did not arrive in time.")
    except FullError:
        connection.refuse("503 Service Unavailable", "The portal is busy. Try again in a moment.")
    except (OSError, httptools.HttpParserError) as error:
        if not isinstance(error, ConnectionResetError):
            logger.warning("front: %r %s", error, request.target.partition(b"?")[0])
        connection.abort()
    except _NoAnswer:
        connection.refuse("502 Bad Gateway", "The portal is starting. Try again in a moment.")
    else:
        connection.done(str(answer.status))


async def _asked(
    front: Front, connection: Client, request: Request, *, is_whole: bool, said: str = ""
) -> _Answer:
    """What the API says, once it is this request's turn."""
    is_bulk = not is_whole and not said
    await front.turns.take(is_bulk=is_bulk)
    try:
        return await _exchange(front, connection, request, is_whole=is_whole, said=said)
    finally:
        front.turns.give_back(is_bulk=is_bulk)


async def _land(front: Front, connection: Client, request: Request, transfer: str) -> _Answer:
    """Write a piece of a transfer, in stretches that the API allows; returns its last answer."""
    await front.landing_turns.take(is_bulk=False)
    try:
        async with landing_of(front, connection, request) as landing:
            held = Held(landing.rest)
            while True:
                answer = await _asked(front, connection, request, is_whole=False, said=held.line())
                if not answer.stretch:
                    return answer
                landed = await landing.land(transfer, Allowed.of(answer.stretch))
                held = Held(landing.rest, landed)
    finally:
        front.landing_turns.give_back(is_bulk=False)


class _NoAnswer(Exception):
    """The API is not there, or went away before it answered."""


class _Answer:
    """What the API says, passed on as it comes (callbacks of httptools)."""

    def __init__(self, connection: Client, request: Request, *, is_held: bool) -> None:
        self._connection, self._request, self._is_held = connection, request, is_held
        self._reason = b""
        self._fields = Fields()
        self._chunked = False
        self._out: list[bytes] = []
        self.status = 0
        self.file = self.stretch = ""
        self.is_complete = self.until_close = False
        self.parser = httptools.HttpResponseParser(self)

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()
        said = {name.lower(): value for name, value in self._fields}
        if self._is_held and PIECE in said:  # to the front alone
            self.stretch, self.is_complete = said[PIECE].decode("latin-1"), True
            return
        has_body = self._request.method != b"HEAD" and self.status not in _BODILESS
        if has_body and b"content-length" not in said:
            self.until_close = b"transfer-encoding" not in said
            self._chunked = self._request.version == "1.1"
            self._request.keep_alive = self._request.keep_alive and self._chunked
        lines = [b"HTTP/1.1 %d %s" % (self.status, self._reason)]
        for name, value in self._fields:
            if name.lower() == _FILE:
                self.file = value.decode("latin-1")
            elif name.lower() not in _NOT_PASSED_ON:
                lines.append(b"%s: %s" % (name, value))
        if self._chunked:
            lines.append(b"Transfer-Encoding: chunked")
        if not self._request.keep_alive or not self._request.body.is_complete:
            lines.append(b"Connection: close")
        self._out.append(b"\r\n".join([*lines, b"", b""]))
        self.is_complete = not has_body or bool(self.file)

    def on_body(self, data: bytes) -> None:
        if self.is_complete:
            return
        self._out.append(b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data)

    def on_message_complete(self) -> None:
        if not self.is_complete and self._chunked:
            self._out.append(b"0\r\n\r\n")
        self.is_complete = True

    def flush(self) -> None:
        """Send what was understood so far, in one packet where it fits."""
        self._connection.write(b"".join(self._out))
        self._out.clear()


async def _exchange(
    front: Front, connection: Client, request: Request, *, is_whole: bool, said: str
) -> _Answer:
    try:
        reader, writer = await asyncio.open_unix_connection(front.api, limit=READ_BYTES)
    except OSError:
        raise _NoAnswer from None
    answer = _Answer(connection, request, is_held=bool(said))
    sender: asyncio.Task[None] | None = None
    try:
        writer.write(forwarded_head(request, connection.peer, is_whole=is_whole, said=said))
        if is_whole:
            writer.write(await request.body.read())
        elif not said:
            sender = asyncio.create_task(_send_body(request, writer))
        while not answer.is_complete:
            data = await _read(reader, sender)
            if not data:
                break
            answer.parser.feed_data(data)
            answer.flush()
            await connection.drained()
    finally:
        if sender is not None:
            sender.cancel()
        writer.close()
    if not answer.status:
        raise _NoAnswer
    if answer.until_close and not answer.is_complete:
        answer.on_message_complete()
        answer.flush()
    if not answer.is_complete:
        raise ConnectionAbortedError("the API process ended in the middle of its answer")
    return answer


async def _read(reader: asyncio.StreamReader, sender: asyncio.Task[None] | None) -> bytes:
    """Bytes of the answer; a body that breaks off ends the wait too."""
    if sender is None or sender.done():
        if sender is not None and isinstance(error := sender.exception(), BodyError):
            raise error
        with suppress(ConnectionResetError):
            return await reader.read(READ_BYTES)
        return b""
    reading = asyncio.ensure_future(reader.read(READ_BYTES))
    try:
        await asyncio.wait({reading, sender}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        reading.cancel()
        raise
    if reading.done():
        return reading.result()
    if isinstance(error := sender.exception(), BodyError):
        reading.cancel()
        raise error
    return await reading


async def _send_body(request: Request, writer: asyncio.StreamWriter) -> None:
    """A large body, as fast as the API takes it."""
    is_chunked = request.body.length is None
    with suppress(ConnectionError):  # the API may answer before it has read all
        while data := await request.body.read():
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if is_chunked else data)
            await writer.drain()
        if is_chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _send_file(front: Front, connection: Client, value: str) -> None:
    """Send part of a file that the API named: no API thread waits for a slow reader."""
    span, _, name = value.partition(" ")
    start, stop = (int(one) for one in span.split("-"))
    path = Path(unquote(name))
    file = await front.in_thread(lambda: path.open("rb"))
    try:
        await front.in_thread(file.seek, start)
        while start < stop:
            data: bytes = await front.in_thread(file.read, min(READ_BYTES, stop - start))
            if not data:
                raise ConnectionAbortedError("the file is shorter than it was")
            start += len(data)
            connection.write(data)
            await connection.drained()
    finally:
        file.close()
