"""A small HTTP/1.1 client with persistent connections, which costs little next to the portal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and ETag."""

    status: int
    body: bytes
    etag: str = ""


class Connections:
    """Pool of as many connections as a browser opens to one host; further requests wait."""

    def __init__(self, host: str, port: int, count: int) -> None:
        self._host, self._port = host, port
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter] | None]
        self._free = asyncio.Queue()
        for _ in range(count):
            self._free.put_nowait(None)

    async def ask(
        self,
        method: str,
        path: str,
        cookie: str,
        *,
        csrf: str = "",
        body: object = None,
        more: Sequence[str] = (),
    ) -> Answer:
        """Send one request; a connection that the server has closed is opened again, once."""
        held = await self._free.get()
        try:
            was_open = held is not None
            held = held or await asyncio.open_connection(self._host, self._port)
            sent = _request(self._host, method, path, cookie, csrf, body, more)
            try:
                return await _exchange(held, sent)
            except (ConnectionError, asyncio.IncompleteReadError):
                if not was_open:
                    raise
            held = await asyncio.open_connection(self._host, self._port)
            return await _exchange(held, sent)
        except BaseException:
            if held is not None:
                held[1].close()
            held = None
            raise
        finally:
            self._free.put_nowait(held)


def _request(
    host: str,
    method: str,
    path: str,
    cookie: str,
    csrf: str,
    body: object,
    more: Sequence[str],
) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Cookie: {cookie}", "Accept: */*"]
    lines += more
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"X-CSRFToken: {csrf}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


async def _exchange(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], sent: bytes
) -> Answer:
    reader, writer = connection
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    if fields.get(b"connection") == b"close":
        raise ConnectionResetError("the portal closes connections that could be kept")
    return Answer(int(head[9:12]), body, fields.get(b"etag", b"").decode())
