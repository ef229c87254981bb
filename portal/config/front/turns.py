"""Whose request the API works on next."""

from __future__ import annotations

import asyncio


class FullError(Exception):
    """Too many requests wait already, or this one waited too long."""


class Turns:
    """How many requests the API works on at once; the others wait here, not on its threads.

    Streamed bodies take only a part of the turns: uploads never keep out the rest.
    """

    def __init__(self, *, calls: int, bulk: int, queue: int, queue_s: float) -> None:
        self._calls, self._bulk = asyncio.Semaphore(calls), asyncio.Semaphore(bulk)
        self._queue, self._queue_s = queue, queue_s
        self.waiting = 0

    async def take(self, *, is_bulk: bool) -> None:
        """Wait for a turn.

        Raises:
            FullError
        """
        if self.waiting >= self._queue:
            raise FullError
        self.waiting += 1
        try:
            async with asyncio.timeout(self._queue_s):
                if is_bulk:
                    await self._bulk.acquire()
                try:
                    await self._calls.acquire()
                except BaseException:
                    self._bulk.release() if is_bulk else None
                    raise
        except TimeoutError:
            raise FullError from None
        finally:
            self.waiting -= 1

    def give_back(self, *, is_bulk: bool) -> None:
        """The call has ended."""
        self._calls.release()
        if is_bulk:
            self._bulk.release()
