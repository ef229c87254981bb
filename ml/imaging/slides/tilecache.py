"""A slide read through its own tile grid, so that overlapping reads decode each tile once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress

import numpy as np

from ml.imaging.slides.grid import DEFAULT_TILE_PX
from ml.imaging.slides.slide import SlideImage
from ml.types import ImageU8

CACHE_BYTES = 96 * 1024 * 1024
"""Decoded tiles kept: four rows of tiles under a region of 24 million pixels at 10x."""

_Key = tuple[int, int, int]


def cached_slide(slide: SlideImage, *, cache_bytes: int = CACHE_BYTES) -> SlideImage:
    """The same slide behind a cache of decoded tiles; thread-safe. Closing leaves it open.

    Whoever reads neighbours one after the other decodes each tile once, as long as the tiles
    between two uses fit ``cache_bytes``.
    """
    return SlideImage(_TileReader(slide, cache_bytes))


class _TileReader:
    """A ``Reader`` that asks another slide for whole tiles only."""

    def __init__(self, slide: SlideImage, cache_bytes: int) -> None:
        self._slide, self._cache_bytes = slide, cache_bytes
        self.vendor, self.icc_profile = slide.info.vendor, slide.icc_profile
        self.properties: Mapping[str, str] = slide.info.properties
        self.mpp = (slide.info.mpp_x, slide.info.mpp_y)
        self.stored, self.display_range = slide.stored, slide.info.display_range
        self._tiles: OrderedDict[_Key, Future[ImageU8]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y), white outside."""
        out: ImageU8 = np.full((height, width, 3), 255, np.uint8)
        stored = self.stored[level]
        side_x, side_y = self._tile_size(level)
        right, bottom = min(x + width, stored.width_px), min(y + height, stored.height_px)
        for row in range(max(y, 0) // side_y, -(-bottom // side_y)):
            for column in range(max(x, 0) // side_x, -(-right // side_x)):
                tile = self._tile((level, column, row))
                left, top = column * side_x, row * side_y
                x0, x1 = max(left, x, 0), min(left + side_x, right)
                y0, y1 = max(top, y, 0), min(top + side_y, bottom)
                out[y0 - y : y1 - y, x0 - x : x1 - x] = tile[
                    y0 - top : y1 - top, x0 - left : x1 - left
                ]
        return out

    def close(self) -> None:
        """Forget the tiles."""
        with self._lock:
            self._tiles.clear()
            self._bytes = 0

    def _tile(self, key: _Key) -> ImageU8:
        while True:
            with self._lock:
                future = self._tiles.get(key)
                mine = future is None
                if future is None:
                    future = self._tiles[key] = Future()
                else:
                    self._tiles.move_to_end(key)
            if mine:
                return self._decode(key, future)
            with suppress(CancelledError):  # its reader failed: decode it here, for the error
                return future.result()

    def _decode(self, key: _Key, future: Future[ImageU8]) -> ImageU8:
        level, column, row = key
        side = self._tile_size(level)
        try:
            tile = self._slide.read_level(level, (column * side[0], row * side[1]), side)
            future.set_result(tile)
        finally:
            if not future.done():
                with self._lock:
                    self._tiles.pop(key, None)
                future.cancel()
        with self._lock:
            self._bytes += tile.nbytes
            while self._bytes > self._cache_bytes and self._drop_oldest(key):
                pass
        return tile

    def _drop_oldest(self, but: _Key) -> bool:
        """Forget the tile unused for longest; False if none is left to forget."""
        oldest = next((k for k, f in self._tiles.items() if f.done() and k != but), None)
        if oldest is None:
            return False
        self._bytes -= self._tiles.pop(oldest).result().nbytes
        return True

    def _tile_size(self, level: int) -> tuple[int, int]:
        tiff = self.stored[level].directory
        if tiff is None:
            return DEFAULT_TILE_PX, DEFAULT_TILE_PX
        return tiff.tile_width_px, tiff.tile_height_px
