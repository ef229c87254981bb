"""A front over real sockets, and what stands for the API behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from portal.config.front.connection import Connection
from portal.config.front.limits import FrontLimits
from portal.config.front.shared import Front

QUICK = FrontLimits(head_s=1, idle_s=2, gap_s=1, write_s=1, queue_s=1)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass
class Api:
    """Stands for gunicorn: takes one request a connection, keeps it, gives the same answer."""

    answer: bytes | Callable[[bytes], bytes] = OK
    wait_s: float = 0.0
    early: bool = False
    requests: list[bytes] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            got = await reader.readuntil(b"\r\n\r\n")
            if not self.early:
                got += await self._body(got.lower(), reader)
            self.requests.append(got)
            await asyncio.sleep(self.wait_s)
            writer.write(self.answer(got) if callable(self.answer) else self.answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _body(self, head: bytes, reader: asyncio.StreamReader) -> bytes:
        if b"content-length: " in head:
            length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            return await reader.readexactly(length)
        if b"transfer-encoding: chunked" in head:
            return await reader.readuntil(b"\r\n0\r\n\r\n")
        return b""


class Running:
    """A front and an API in a thread of their own."""

    def __init__(self, folder: Path, api: Api, limits: FrontLimits) -> None:
        self.api, self.limits = api, limits
        self.path = str(folder / "api.sock")
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),))

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self.front = Front(api=self.path, limits=self.limits, access_log=True)
        upstream = await asyncio.start_unix_server(self.api.handle, self.path, limit=2**24)
        server = await self._loop.create_server(lambda: Connection(self.front), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        sweeper = asyncio.create_task(self.front.sweep_forever())
        self._ready.set()
        await self._stop.wait()
        server.close()
        upstream.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in [sweeper, *left]:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def connect(self) -> socket.socket:
        """A client."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def ask(self, sent: bytes) -> bytes:
        """All that comes until the front ends the connection."""
        with self.connect() as client:
            client.sendall(sent)
            return read_all(client)

    def get(self) -> bytes:
        """A whole ordinary request."""
        return self.ask(b"GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")


def read_all(client: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    got = []
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            got.append(data)
    return b"".join(got)


def read_one(client: socket.socket) -> bytes:
    """One answer of two bytes."""
    got = b""
    while not got.endswith(b"\r\n\r\nok") and (data := client.recv(65536)):
        got += data
    return got
