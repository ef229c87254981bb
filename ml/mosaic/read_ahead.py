"""Frames read ahead of a GPU: decoding takes longer than what the GPU does with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ml.imaging.slides.ahead import readers_asked
from ml.imaging.videos.ahead import ahead
from ml.keypoints.device import accelerator
from ml.mosaic.sources import FrameSource, SourceFrame

T = TypeVar("T")


def frames_ahead(frames: Iterable[T]) -> Iterable[T]:
    """The same frames, decoded by a thread where there is a GPU; as they are on a processor.

    ``TESSERA_READERS`` decides otherwise: 0 reads none ahead, any other number does.

    Raises:
        BadInputError: see ``readers_asked`` and ``accelerator``.
    """
    is_wanted = readers_asked(default=int(accelerator() is not None))
    return ahead(frames) if is_wanted else frames


class AheadSource:
    """A source whose frames are read by ``frames_ahead``."""

    def __init__(self, source: FrameSource) -> None:
        self._source, self.count = source, source.count

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """See ``FrameSource``."""
        yield from frames_ahead(self._source.frames(first))
