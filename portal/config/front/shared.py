"""What the connections of one front process share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from portal.config.front.limits import FrontLimits
from portal.config.front.live import LiveAnswers
from portal.config.front.messages import Request
from portal.config.front.turns import Turns

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
SWEEP_S = 0.5  # limits are seconds long: half a second more does no harm
TILE_THREADS = 3  # decoding releases the interpreter's lock


class Client(Protocol):
    """A connection, as far as the others need to know it."""

    peer: str
    deadline: float | None

    def write(self, data: bytes) -> None:
        """Part of an answer."""

    async def drained(self) -> None:
        """Wait until the client has taken most of what it was sent."""

    def done(self, status: str) -> None:
        """The answer is written."""

    def refuse(self, status: str, text: str) -> None:
        """Say what is wrong, and end."""

    def take_over(self) -> tuple[int, bytes]:
        """The socket, and what was read of the body."""

    def taken_over(self) -> None:
        """The rest of the body was read from the socket."""

    def abort(self) -> None:
        """End at once."""

    def expire(self) -> None:
        """The deadline has passed."""

    def stop(self) -> None:
        """The portal stops."""


class Front:
    """Counts, turns, threads and the clock."""

    def __init__(self, *, api: str, limits: FrontLimits, access_log: bool = False) -> None:
        self.api, self.limits, self.access_log = api, limits, access_log
        self.turns = Turns(
            calls=limits.calls, bulk=limits.bulk, queue=limits.queue, queue_s=limits.queue_s
        )
        most = limits.landings
        self.landing_turns = Turns(
            calls=most, bulk=most, queue=limits.queue, queue_s=limits.queue_s
        )
        self.is_stopping = False
        self.now = time.monotonic
        self.connections: set[Client] = set()
        self._by_address: Counter[str] = Counter()
        self.threads = ThreadPoolExecutor(TILE_THREADS, thread_name_prefix="tile")
        self.landings = ThreadPoolExecutor(most, thread_name_prefix="landing")
        self.live = LiveAnswers(self.in_thread)

    def admit(self, connection: Client) -> bool:
        """Count a connection in; False if there are too many."""
        self._by_address[connection.peer] += 1
        self.connections.add(connection)
        most = self.limits.per_address
        is_fair = not most or self._by_address[connection.peer] <= most
        return is_fair and len(self.connections) <= self.limits.connections

    def leave(self, connection: Client) -> None:
        """Count it out."""
        if connection in self.connections:
            self.connections.remove(connection)
            self._by_address[connection.peer] -= 1
            if not self._by_address[connection.peer]:
                del self._by_address[connection.peer]

    async def in_thread(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run what may wait for the disk or the database in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, call, *args)

    def log(self, connection: Client, request: Request, status: str) -> None:
        """Log a line per request if ``access_log`` is on: neither queries nor headers, which may
        hold secrets."""
        if self.access_log:
            path = request.target.partition(b"?")[0].decode("latin-1")
            took_ms = (self.now() - request.began) * 1e3
            method = request.method.decode("latin-1")
            logger.info("%s %s %s %s %.0f ms", connection.peer, method, path, status[:3], took_ms)

    async def sweep_forever(self) -> None:
        """End what took too long."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self.now()
            for connection in list(self.connections):
                if connection.deadline is not None and connection.deadline < now:
                    connection.expire()
