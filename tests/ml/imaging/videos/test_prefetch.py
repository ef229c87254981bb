"""Frames read ahead: the same ones, bounded, errors where they belong, no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ml.imaging.videos.prefetch import prefetch


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("frames")}


def test_frames_are_prefetched_in_order_up_to_a_limit() -> None:
    made: list[int] = []
    room = threading.Semaphore(0)

    def frames() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            room.release()
            yield number

    prefetched = prefetch(frames(), count=3)
    assert next(prefetched) == 0
    for _ in range(4):
        assert room.acquire(timeout=10)
    assert len(made) <= 4
    assert [0, *prefetched] == list(range(20)) and not _threads()
    assert list(prefetch([])) == []


def test_an_error_is_raised_at_the_position_of_its_frame() -> None:
    def frames() -> Iterator[int]:
        yield 1
        raise OSError("torn")

    prefetched = prefetch(frames())
    assert next(prefetched) == 1
    with pytest.raises(OSError, match="torn"):
        next(prefetched)
    assert not _threads()


def test_stopping_early_closes_the_source_and_its_thread() -> None:
    closed: list[str] = []

    def frames() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append("closed")

    prefetched = prefetch(frames())
    next(prefetched)
    prefetched.close()  # type: ignore[attr-defined]
    assert closed == ["closed"] and not _threads()
