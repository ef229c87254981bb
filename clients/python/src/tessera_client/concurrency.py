"""Functions that differ between threads and an event loop.

``unasync.py`` writes ``sync`` from ``aio``; each name here loses its ``a_`` there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

a_sleep = asyncio.sleep
sleep = time.sleep


async def a_call(slow: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that reads files, in a thread."""
    return await asyncio.to_thread(slow, *args, **kwargs)


def call(slow: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that reads files."""
    return slow(*args, **kwargs)
