"""Frames decoded by a separate thread, ahead of the work on them.

Decoding and the conversion to RGB let go of the interpreter's lock, so a thread is enough; slides
are read by processes (``ml.imaging.slides.ahead``), as their decoders hold it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
FRAMES = 8
"""Held at most: of full HD 50 MB, and enough to bridge a keyframe that takes longer."""

_END = object()


def ahead(frames: Iterable[T], *, count: int = FRAMES) -> Iterator[T]:
    """The same frames in the same order, up to ``count`` of them made before they are asked for.

    An error of the source is raised where its frame would have come. Stopping early leaves no
    thread behind.
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
