"""Pool of threads with a limit of waiting requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")
QUEUE, QUEUE_S = 500, 30.0  # requests that wait for a thread, and for how long


class BusyError(Exception):
    """Too many requests are waiting, or this one waited too long."""


class Threads:
    """Run calls in threads; further calls wait in the event loop for a limited time."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._free = asyncio.Semaphore(count)
        self._waiting = 0

    async def run(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a call once a thread is free.

        Raises:
            BusyError
        """
        if self._waiting >= QUEUE:
            raise BusyError
        self._waiting += 1
        try:
            async with asyncio.timeout(QUEUE_S):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError from None
        finally:
            self._waiting -= 1
        running = asyncio.get_running_loop().run_in_executor(self._pool, call, *args)
        running.add_done_callback(lambda _: self._free.release())
        return await asyncio.shield(running)
