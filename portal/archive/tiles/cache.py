"""Open files of the tile server."""

from __future__ import annotations

import threading

from cachetools import LRUCache

from ml.imaging.slides.tiles import TileSource
from ml.types import DisplayRange
from portal.archive.storage import files as storage

OPEN_FILES = 64  # well below the usual limit of 1,024 descriptors of a process


class SourceCache:
    """The files used last, open. One that is dropped closes when its last reader is done."""

    def __init__(self, size: int) -> None:
        self._sources: LRUCache[tuple[str, DisplayRange | None], TileSource] = LRUCache(size)
        self._lock = threading.Lock()

    def get(self, path: str, display_range: DisplayRange | None = None) -> TileSource:
        """The open file in that range, opened now where it was not."""
        key = (str(storage.resolve(path)), display_range)
        with self._lock:
            source = self._sources.get(key)
        if source is not None:
            return source
        source = TileSource(key[0], display_range=display_range)
        with self._lock:
            return self._sources.setdefault(key, source)

    def clear(self) -> None:
        """Forget all (tests)."""
        with self._lock:
            self._sources.clear()


SOURCES = SourceCache(OPEN_FILES)
