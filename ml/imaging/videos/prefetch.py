"""Frames decoded by a separate thread while the caller works on earlier ones.

Decoding and the conversion to RGB release the interpreter lock, so a thread is enough; slides need
processes (``ml.imaging.slides.prefetch``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
FRAMES = 8
"""Largest number of frames in memory: 50 MB of full HD."""

_END = object()


def prefetch(frames: Iterable[T], *, count: int = FRAMES) -> Iterator[T]:
    """The same frames in the same order, with up to ``count`` of them produced in advance.

    An error of the source is raised at the position of its frame. Stopping early leaves no thread
    behind.
    """
    source = iter(frames)
    with ThreadPoolExecutor(1, thread_name_prefix="frames") as thread:
        waiting = deque(thread.submit(next, source, _END) for _ in range(count))
        try:
            while (frame := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, source, _END))
                yield frame  # type: ignore[misc]
        finally:
            thread.shutdown(cancel_futures=True)
            close = getattr(source, "close", None)
            if close is not None:
                close()
