"""The few things that differ between waiting in a thread and waiting in an event loop.

``unasync.py`` writes ``client.py`` from ``aio.py``; there each name here loses its ``a_``.
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
    """What reads a disk, in a thread."""
    return await asyncio.to_thread(slow, *args, **kwargs)


def call(slow: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What reads a disk."""
    return slow(*args, **kwargs)
