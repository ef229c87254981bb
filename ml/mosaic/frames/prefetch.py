"""Frames read ahead of a GPU: decoding takes longer than what the GPU does with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ml.imaging.slides.prefetch import prefetch_process_count
from ml.imaging.videos.prefetch import prefetch
from ml.keypoints.device import gpu_compute
from ml.mosaic.frames.sources import FrameSource, SourceFrame

T = TypeVar("T")


def prefetched_frames(frames: Iterable[T]) -> Iterable[T]:
    """Read frames ahead in a thread if there is a GPU; without one, return them unchanged.

    ``TESSERA_READERS`` overrides it: 0 reads none ahead, any other number does.

    Raises:
        BadInputError: see ``prefetch_process_count`` and ``gpu_compute``.
    """
    uses_thread = prefetch_process_count(default=int(gpu_compute() is not None))
    return prefetch(frames) if uses_thread else frames


class PrefetchedSource:
    """A source whose frames are read by ``prefetched_frames``."""

    def __init__(self, source: FrameSource) -> None:
        self._source, self.count = source, source.count

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """See ``FrameSource``."""
        yield from prefetched_frames(self._source.frames(first))
