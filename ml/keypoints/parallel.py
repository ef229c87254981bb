"""Two images at once: the work on each runs in a thread of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def both(function: Callable[[In], Out], a: In, b: In) -> tuple[Out, Out]:
    """``function`` of a and of b, at once; an error of a is raised before one of b.

    OpenCV, torch and most of NumPy release the interpreter while they work. Meanwhile the two share
    torch's own threads: twice as many as there are cores would wait for each other at every layer
    of a network, many times longer than they work.
    """
    with _torch.shared_out(), ThreadPoolExecutor(2, thread_name_prefix="both") as pool:
        one, other = pool.submit(function, a), pool.submit(function, b)
        return one.result(), other.result()


def alone(function: Callable[[In], Out], a: In) -> Out:
    """``function`` of a, with as many of torch's threads as within ``both``.

    The last bits of a network's output depend on the number of threads.
    """
    with _torch.shared_out():
        return function(a)


class _TorchThreads:
    """Halves torch's number of threads, one number for the whole process, while any user runs.

    The first user halves it, the last restores it. Where nothing has loaded torch it is left alone.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._before = Lock(), 0, 0

    @contextmanager
    def shared_out(self) -> Iterator[None]:
        """Within this, torch uses half of its threads, one at least."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        with self._lock:
            if not self._users:
                self._before = torch.get_num_threads()
                torch.set_num_threads(max(1, self._before // 2))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    torch.set_num_threads(self._before)


_torch = _TorchThreads()
