"""The web server over real sockets, with an application that records its requests."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from portal.operations.web.protocol import ClientLimits
from portal.operations.web.server import server_of
from tests.polling import wait_until

QUICK = ClientLimits(head_s=1, idle_s=2, body_s=1, write_s=1)
Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Received:
    """A request as the application saw it."""

    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""


@dataclass
class Recorder:
    """ASGI: reads each request to its end, keeps it and answers ``ok``."""

    received: list[Received] = field(default_factory=list)
    reads: bool = True
    gate: threading.Event | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        requested = Received(scope["method"], scope["path"], [])
        self.received.append(requested)
        more = self.reads
        while more:
            message = await receive()
            if message["type"] != "http.request":
                self.received.remove(requested)
                return
            requested.body += message["body"]
            more = message["more_body"]
        requested.headers = list(scope["headers"])
        await answer(send, b"ok")


async def answer(send: Any, body: bytes, status: int = 200) -> None:
    """A whole answer."""
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Running:
    """A server in a thread of its own."""

    def __init__(self, application: Application, limits: ClientLimits = QUICK) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.port: int = self._listening.getsockname()[1]
        self.server = server_of(application, limits)
        self._thread = threading.Thread(target=self.server.run, args=([self._listening],))

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.join()

    def join(self) -> None:
        """Wait until the server has stopped."""
        self._thread.join(20)
        assert not self._thread.is_alive()

    @property
    def connections(self) -> int:
        """Count of open connections."""
        return len(self.server.server_state.connections)

    def connect(self) -> socket.socket:
        """A client."""
        return connect(self.port)

    def exchange(self, sent: bytes) -> bytes:
        """All that comes until the server ends the connection."""
        return exchange(self.port, sent)

    def get(self) -> bytes:
        """An ordinary request."""
        return self.exchange(b"GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")


def connect(port: int) -> socket.socket:
    """A client."""
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def exchange(port: int, sent: bytes) -> bytes:
    """All that comes until the server ends the connection."""
    with connect(port) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(sent)
        return read_all(client)


def read_all(client: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    got = []
    with contextlib.suppress(ConnectionError):
        while data := client.recv(65536):
            got.append(data)
    return b"".join(got)


def read_one(client: socket.socket) -> bytes:
    """One answer of two bytes."""
    got = b""
    while not got.endswith(b"\r\n\r\nok") and (data := client.recv(65536)):
        got += data
    return got


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for what happens in another thread."""
    wait_until(holds, "the other thread", within_s=seconds, every_s=0.02)
