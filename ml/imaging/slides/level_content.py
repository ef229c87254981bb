"""Comparison of levels with level 0, so that a label among the pages is not taken for one.

A file states which of its images are levels, and some state it of labels. So each level is
compared with the next finer one before it is used, at places where it has most structure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from cachetools import LRUCache

from ml.errors import CorruptFileError
from ml.imaging.formats.tiff_layout import has_shape
from ml.imaging.slides.grid import StoredLevel
from ml.types import ArrayF32, ImageU8

Box = tuple[int, int, int, int]
"""x, y, width, height in pixels."""
Read = Callable[[int, int, int, int], ImageU8]
"""Pixels of a box of an image: (height, width, 3) uint8."""

_CELL_PX = 64  # side of a compared place, pixels of the coarser image
_MEANS_PX = 4  # sides of the means that are compared: a shift by a pixel changes them little
_STRUCTURED, _EVEN = 8, 4
"""Compared places: those of most structure, and others evenly over the image."""
MAX_FULL_READ_PIXELS = 4_000_000
"""Up to this the coarser image is searched for structure; of a larger one 4 x 4 places are."""
_MAX_FINER_PX = 1_024  # side of a place in the finer image
_MAX_ERROR = 8.0  # grey levels, root mean square: noise of coding
_MAX_ERROR_SHARE = 0.6
"""Share of a place's standard deviation: sharpened levels have up to 0.3, others 1 and more."""
_cached: LRUCache[tuple[str, int, int], tuple[int, ...]] = LRUCache(1_024)
_cache_lock = threading.Lock()


def same_content(
    coarser: Read, coarser_px: tuple[int, int], finer: Read, finer_px: tuple[int, int]
) -> bool:
    """Return whether an image is a smaller version of another.

    Args:
        coarser_px, finer_px: (width, height) of the images.
    Returns:
        False if one of the compared places differs, or none could be compared.
    """
    compared = 0
    for box in _boxes(coarser, coarser_px, finer_px):
        try:
            place, larger = coarser(*box), finer(*_box_in(box, coarser_px, finer_px))
        except CorruptFileError:  # reported when its pixels are read
            continue
        if not _is_similar(place, larger):
            return False
        compared += 1
    return compared > 0


class LeveledReader(Protocol):
    """The part of a reader that ``levels_shown`` uses."""

    stored: tuple[StoredLevel, ...]

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y)."""
        ...


def levels_shown(reader: LeveledReader, path: Path | None) -> tuple[int, ...]:
    """Indices of the levels of a file with the content of level 0; 0 is always one.

    Cached in the process by the file's path, size and time of change.
    """
    if len(reader.stored) == 1:
        return (0,)
    state = path.stat() if path is not None else None
    key = (str(path), state.st_size, state.st_mtime_ns) if state else None
    with _cache_lock:
        levels = _cached.get(key) if key is not None else None
    if levels is None:
        levels = _compare_levels(reader)
        if key is not None:
            with _cache_lock:
                _cached[key] = levels
    return levels


def _compare_levels(reader: LeveledReader) -> tuple[int, ...]:
    confirmed = [0]
    for level in range(1, len(reader.stored)):
        coarser_px, finer_px, first_px = (
            (reader.stored[at].width_px, reader.stored[at].height_px)
            for at in (level, confirmed[-1], 0)
        )
        coarser, finer = partial(reader.read, level), partial(reader.read, confirmed[-1])
        if (
            min(coarser_px) >= 1
            and has_shape(coarser_px, first_px)
            and same_content(coarser, coarser_px, finer, finer_px)
        ):
            confirmed.append(level)
    return tuple(confirmed)


def _boxes(read: Read, size_px: tuple[int, int], finer_px: tuple[int, int]) -> list[Box]:
    """Places to compare, in pixels of the coarser image."""
    width, height = size_px
    side = max(8, min(_CELL_PX, int(_MAX_FINER_PX * width / finer_px[0])))
    if width * height > MAX_FULL_READ_PIXELS:
        return [
            (int(x), int(y), side, side)
            for x in np.linspace(0, width - side, 4)
            for y in np.linspace(0, height - side, 4)
        ]
    cells = [
        (x, y, min(side, width - x), min(side, height - y))
        for y in range(0, height, side)
        for x in range(0, width, side)
    ]
    try:
        pixels = read(0, 0, width, height)
    except CorruptFileError:
        return cells
    spread = [float(pixels[y : y + high, x : x + wide].std()) for x, y, wide, high in cells]
    ranked = sorted(range(len(cells)), key=lambda at: -spread[at])
    evenly_spaced = np.linspace(0, len(cells) - 1, _EVEN).astype(int).tolist()
    return [cells[at] for at in dict.fromkeys((*ranked[:_STRUCTURED], *evenly_spaced))]


def _box_in(box: Box, size_px: tuple[int, int], finer_px: tuple[int, int]) -> Box:
    """A box of the coarser image in pixels of the finer."""
    scale_x, scale_y = finer_px[0] / size_px[0], finer_px[1] / size_px[1]
    left, top = round(box[0] * scale_x), round(box[1] * scale_y)
    right, bottom = round((box[0] + box[2]) * scale_x), round((box[1] + box[3]) * scale_y)
    return left, top, max(1, right - left), max(1, bottom - top)


def _is_similar(coarse: ImageU8, fine: ImageU8) -> bool:
    height, width = coarse.shape[:2]
    size = (width, height)
    # some writers leave rows out instead of taking means
    interpolations = (cv2.INTER_AREA, cv2.INTER_NEAREST)
    shrunk = (
        np.asarray(cv2.resize(fine, size, interpolation=way), np.uint8) for way in interpolations
    )
    return any(_differ_little(_means(coarse), _means(candidate)) for candidate in shrunk)


def _differ_little(a: ArrayF32, b: ArrayF32) -> bool:
    error = float(np.sqrt(np.mean((a - b) ** 2)))
    spread = max(float(a.std(axis=(0, 1)).max()), float(b.std(axis=(0, 1)).max()))
    return error <= max(_MAX_ERROR, _MAX_ERROR_SHARE * spread)


def _means(rgb: ImageU8) -> ArrayF32:
    """Means of blocks of ``_MEANS_PX``: (h, w, 3) float32."""
    height, width = rgb.shape[:2]
    size = (max(1, width // _MEANS_PX), max(1, height // _MEANS_PX))
    return np.asarray(
        cv2.resize(rgb.astype(np.float32), size, interpolation=cv2.INTER_AREA), np.float32
    )
