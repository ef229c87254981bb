"""Work in threads of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(work: Callable[[], object], count: int = 2) -> None:
    """Begin ``work`` in ``count`` threads; returns when all have ended."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: Playwright leaves a loop running in a test's."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
