"""Polling with a deadline, for what no event reports: another process's rows, files or sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")


def wait_until(
    read: Callable[[], _Value | None],
    what: str,
    *,
    within_s: float,
    every_s: float = 0.1,
    detail: Callable[[], object] = str,
) -> _Value:
    """Call ``read`` until it returns something true, and return that.

    Args:
        what: Name of the awaited state, for the error.
        detail: Called for the error's text, such as the end of a log.
    Raises:
        TimeoutError: It was still false after ``within_s``.
    """
    deadline = time.monotonic() + within_s
    while not (value := read()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s:g} s. {detail()}")
        time.sleep(every_s)
    return value


async def wait_until_async(read: Callable[[], object], *, within_s: float) -> None:
    """Let other tasks run until ``read`` returns something true, or the time is over."""
    deadline = time.monotonic() + within_s
    while not read() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
