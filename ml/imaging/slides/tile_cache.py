"""Cache of a slide's decoded tiles, so that overlapping reads decode each tile once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from cachetools import LRUCache, cached

from ml.imaging.slides.grid import DEFAULT_TILE_PX, StoredLevel
from ml.imaging.slides.slide import SlideImage
from ml.types import ImageU8

CACHE_BYTES = 96 * 1024 * 1024
"""Cache of decoded tiles: four rows of tiles under a region of 24 million pixels at 10x."""


def cached_slide(slide: SlideImage, *, cache_bytes: int = CACHE_BYTES) -> SlideImage:
    """Wrap a slide in a cache of decoded tiles; thread-safe. Closing leaves the slide open.

    Sequential reads of neighbours decode each tile once, if the tiles between two uses fit into
    ``cache_bytes``.
    """
    return SlideImage(_TileReader(slide, cache_bytes))


class _TileReader:
    """A ``Reader`` that reads only complete tiles of another slide."""

    def __init__(self, slide: SlideImage, cache_bytes: int) -> None:
        self.vendor, self.icc_profile = slide.info.vendor, slide.icc_profile
        self.properties: Mapping[str, str] = slide.info.properties
        self.mpp = (slide.info.mpp_x, slide.info.mpp_y)
        self.stored, self.display_range = slide.stored, slide.info.display_range
        tiles: LRUCache[Any, ImageU8] = LRUCache(cache_bytes, getsizeof=lambda tile: tile.nbytes)
        # A thread that requests a tile which another thread is decoding waits for it.
        self._tile = cached(tiles, condition=threading.Condition())(partial(_decode, slide))

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y), white outside."""
        out: ImageU8 = np.full((height, width, 3), 255, np.uint8)
        stored = self.stored[level]
        side_x, side_y = _tile_size(stored)
        right, bottom = min(x + width, stored.width_px), min(y + height, stored.height_px)
        for row in range(max(y, 0) // side_y, -(-bottom // side_y)):
            for column in range(max(x, 0) // side_x, -(-right // side_x)):
                tile = self._tile(level, column, row)
                left, top = column * side_x, row * side_y
                x0, x1 = max(left, x, 0), min(left + side_x, right)
                y0, y1 = max(top, y, 0), min(top + side_y, bottom)
                out[y0 - y : y1 - y, x0 - x : x1 - x] = tile[
                    y0 - top : y1 - top, x0 - left : x1 - left
                ]
        return out

    def close(self) -> None:
        """Clear the cache."""
        self._tile.cache_clear()


def _decode(slide: SlideImage, level: int, column: int, row: int) -> ImageU8:
    side = _tile_size(slide.stored[level])
    return slide.read_level(level, (column * side[0], row * side[1]), side)


def _tile_size(level: StoredLevel) -> tuple[int, int]:
    tiff = level.directory
    if tiff is None:
        return DEFAULT_TILE_PX, DEFAULT_TILE_PX
    return tiff.tile_width_px, tiff.tile_height_px
