"""What the tile server keeps: open files, and answers bounded by their bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from ml.imaging.slides.tiles import TileSource
from ml.types import DisplayRange
from portal.archive import storage

Value = TypeVar("Value")
OPEN_FILES = 64  # well below the usual limit of 1,024 descriptors of a process


class SourceCache:
    """The files used last, open. One that is dropped closes when its last reader is done."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._sources: OrderedDict[tuple[str, DisplayRange | None], TileSource] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, display_range: DisplayRange | None = None) -> TileSource:
        """The open file in that range, opened now where it was not."""
        key = (str(storage.resolve(path)), display_range)
        with self._lock:
            source = self._sources.get(key)
            if source is not None:
                self._sources.move_to_end(key)
                return source
        source = TileSource(key[0], display_range=display_range)
        with self._lock:
            source = self._sources.setdefault(key, source)
            while len(self._sources) > self._size:
                self._sources.popitem(last=False)
        return source

    def clear(self) -> None:
        """Forget all (tests)."""
        with self._lock:
            self._sources.clear()


class ByteCache(Generic[Value]):
    """Least recently used values, bounded by the bytes they say they hold."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        """The value, now the most recent, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: str, value: Value, size_bytes: int) -> None:
        """Keep, and drop the oldest beyond the limit."""
        with self._lock:
            before = self._values.pop(key, None)
            self._held += size_bytes - (before[1] if before else 0)
            self._values[key] = (value, size_bytes)
            while self._held > self._limit:
                _, (_, dropped) = self._values.popitem(last=False)
                self._held -= dropped

    def clear(self) -> None:
        """Forget all (tests)."""
        with self._lock:
            self._values.clear()
            self._held = 0


SOURCES = SourceCache(OPEN_FILES)
