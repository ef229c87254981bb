"""Generic tiled TIFF pyramids, in pages or SubIFDs, by libvips."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
from PIL import Image
from pyvips.vimage import FORMAT_TO_TYPESTR

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.tiff import JPEG, RGB, SEPARATE_PLANES, YCBCR, TiffDirectory
from ml.imaging.formats.tiff_coding import is_deep, require_readable
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.limits import require_slide_size, require_tile_size
from ml.imaging.slides.backends import Reader
from ml.imaging.slides.display_range import Values, range_of, sampled, shown, stated_depth
from ml.imaging.slides.grid import GENERIC, StoredLevel, fits_grid
from ml.imaging.slides.jpeg import standalone_header
from ml.imaging.slides.metadata import layout_mpp, rgb_profile
from ml.imaging.slides.stills import as_stored, first_line, load_directory, to_rgb
from ml.types import DisplayRange, ImageU8

_OPEN_LEVELS = 8
"""Levels open in a process: libvips keeps two and a half rows of tiles of each, 160 MB of one that
is 41,000 px wide."""
_SAFE_TILE_PX = 256  # libvips takes tiles of this size for images of any size
pyvips.cache_set_max(0)  # it would keep released levels open


class TiledTiffReader:
    """Reads regions of the levels of the largest image; nothing else is reachable."""

    vendor = GENERIC
    properties: Mapping[str, str] = {}

    def __init__(
        self,
        path: Path,
        display_range: DisplayRange | None = None,
        *,
        described_by: Reader | None = None,
    ) -> None:
        """Open the file.

        Args:
            display_range: of pixels of more than 8 bits; by default as the file states it, or as
                its values suggest.
            described_by: another reader that knows its vendor, properties and scale.
        """
        self._path = path
        layout = read_layout(path)
        first = layout.levels[0]
        if first.planar == SEPARATE_PLANES:
            raise UnsupportedFormatError(
                "the TIFF file stores each colour in tiles of its own (planar configuration 2), "
                "which can be read in 8 bits and upright only; save it with the colours of a pixel "
                "together"
            )
        if not first.is_tiled or not fits_grid(first):
            raise CorruptFileError("the TIFF file's largest image is not stored in usable tiles")
        require_readable(first, by_openslide=False)
        require_slide_size(first.width_px, first.height_px)
        levels = tuple(directory for directory in layout.levels if _is_readable(directory))
        for level in levels:
            require_tile_size(level.tile_width_px, level.tile_height_px)
        self._levels = levels
        self.stored: tuple[StoredLevel, ...] = tuple(
            StoredLevel(
                level.width_px,
                level.height_px,
                downsample=(first.width_px / level.width_px + first.height_px / level.height_px)
                / 2,
                directory=level,
            )
            for level in levels
        )
        self.icc_profile = rgb_profile(first.icc_profile)
        self.mpp = layout_mpp(layout)
        if described_by is not None:
            self.vendor, self.properties = described_by.vendor, described_by.properties
            self.mpp = described_by.mpp
        self._is_deep = is_deep(first)
        self.display_range = (display_range or self._range()) if self._is_deep else None

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y), white outside."""
        stored = self.stored[level]
        out: ImageU8 = np.full((height, width, 3), 255, np.uint8)
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + width, stored.width_px), min(y + height, stored.height_px)
        if right <= left or bottom <= top:
            return out
        for x0, y0, x1, y1 in self._stored_parts(level, left, top, right, bottom):
            values, has_alpha = self._values(level, x0, y0, x1 - x0, y1 - y0)
            if self.display_range is not None:
                values = shown(values, self.display_range, has_alpha=has_alpha)
            out[y0 - y : y1 - y, x0 - x : x1 - x] = values
        return out

    def _stored_parts(
        self, level: int, left: int, top: int, right: int, bottom: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield a box, or, if a level lacks tiles, its part in each stored tile."""
        directory = self._levels[level]
        if directory.counts.all():
            yield left, top, right, bottom
            return
        wide, high = directory.tile_width_px, directory.tile_height_px
        for row in range(top // high, -(-bottom // high)):
            for column in range(left // wide, -(-right // wide)):
                if directory.counts[row * directory.columns + column]:
                    yield (
                        max(left, column * wide),
                        max(top, row * high),
                        min(right, (column + 1) * wide),
                        min(bottom, (row + 1) * high),
                    )

    def _values(self, level: int, x: int, y: int, width: int, height: int) -> tuple[Values, bool]:
        """Return the stored values of a box in a level, and whether the last channel is opacity."""
        directory = self._levels[level]
        try:
            if _is_smaller_than_its_tile(directory):
                return _first_tile(self._path, directory)[y : y + height, x : x + width], False
            image = _open_level(os.getpid(), self._path, directory)
            # fetched by this thread: libvips' own threads are gone after a fork
            data = pyvips.Region.new(image).fetch(x, y, width, height)
        except (pyvips.Error, OSError) as error:
            _open_level.cache_clear()  # libvips would give a tile that failed as a black one
            raise CorruptFileError(
                f"level {level} at ({x}, {y}) cannot be decoded: {first_line(error)}"
            ) from error
        values = np.frombuffer(data, FORMAT_TO_TYPESTR[image.format])
        return values.reshape(height, width, image.bands), bool(image.hasalpha())

    def _range(self) -> DisplayRange:
        """Range that the file states, else that of level 0, as other images may be no levels."""

        def colors(x: int, y: int, width: int, height: int) -> Values:
            values, has_alpha = self._values(0, x, y, width, height)
            return values[..., :-1] if has_alpha else values

        values = sampled(colors, self.stored[0].width_px, self.stored[0].height_px)
        return range_of(values, stated_depth(self._path))

    def close(self) -> None:
        """Release the file."""
        _open_level.cache_clear()  # closes the levels of all readers; they open again on demand


@lru_cache(maxsize=_OPEN_LEVELS)
def _open_level(pid: int, path: Path, directory: TiffDirectory) -> Any:
    """Open a level as 8-bit RGB, or with its stored depth if that is larger.

    ``pid`` keys the cache: after a fork, an image shared with the parent would share its file
    offset.
    """
    image = load_directory(path, directory)
    return as_stored(image, directory) if is_deep(directory) else to_rgb(image)


def _is_readable(directory: TiffDirectory) -> bool:
    try:
        require_readable(directory, by_openslide=False)
    except UnsupportedFormatError:
        return False
    return fits_grid(directory)


def _is_smaller_than_its_tile(directory: TiffDirectory) -> bool:
    """Return whether libvips rejects an image because its tile is much larger."""
    tile_px = max(directory.tile_width_px, directory.tile_height_px)
    return tile_px > _SAFE_TILE_PX and 2 * max(directory.width_px, directory.height_px) < tile_px


def _first_tile(path: Path, directory: TiffDirectory) -> ImageU8:
    """The only tile of a small level, where it is JPEG: (h, w, 3) uint8."""
    if directory.compression != JPEG:
        raise CorruptFileError("the level is far smaller than its tile, which is not JPEG")
    with path.open("rb") as file:
        file.seek(int(directory.offsets[0]))
        data = file.read(int(directory.counts[0]))
    transform = (
        None if directory.photometric not in (RGB, YCBCR) else int(directory.photometric == YCBCR)
    )
    head = standalone_header(directory.jpeg_tables, adobe_transform=transform, icc_profile=None)
    with Image.open(io.BytesIO(head + data[2:]), formats=["JPEG"]) as image:
        return np.asarray(image.convert("RGB"))
