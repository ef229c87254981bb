"""The same work by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def at_once(work: Callable[[], object], count: int = 2) -> None:
    """Begin ``work`` in ``count`` threads; returns when all have ended."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
