"""Processing of two images in two threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def run_both(function: Callable[[In], Out], a: In, b: In) -> tuple[Out, Out]:
    """Call ``function`` on a and b in two threads; an error of a takes precedence.

    OpenCV, torch and most of NumPy release the interpreter lock. Each call gets half of the threads
    of torch.
    """
    with _torch.halved(), ThreadPoolExecutor(2, thread_name_prefix="both") as pool:
        first, second = pool.submit(function, a), pool.submit(function, b)
        return first.result(), second.result()


def run_single(function: Callable[[In], Out], a: In) -> Out:
    """Call ``function`` with as many threads of torch as in ``run_both``.

    The last bits of the output of a network depend on the number of threads.
    """
    with _torch.halved():
        return function(a)


class _TorchThreads:
    """Halves the number of threads of torch, which is global to the process, during use.

    The first user halves it, the last restores it. No effect if torch is not loaded.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._original = Lock(), 0, 0

    @contextmanager
    def halved(self) -> Iterator[None]:
        """Context in which torch uses half of its threads, at least one."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        with self._lock:
            if not self._users:
                self._original = torch.get_num_threads()
                torch.set_num_threads(max(1, self._original // 2))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    torch.set_num_threads(self._original)


_torch = _TorchThreads()
