"""Tiled TIFF pyramids that OpenSlide does not read rightly, by libvips.

They are big-endian classic TIFFs and those whose stored pixels are turned.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyvips

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.tiff import PLANES_APART, TiffDirectory, read_directories
from ml.imaging.formats.tiff_coding import is_deep, require_readable
from ml.imaging.limits import require_slide_size, require_tile_size
from ml.imaging.slides.depth import Values, range_of, sampled, shown, stated_depth
from ml.imaging.slides.grid import GENERIC, StoredLevel, fits_grid
from ml.imaging.slides.metadata import mpp_from_resolution, rgb_profile
from ml.imaging.slides.readers import Reader
from ml.imaging.slides.stills import as_stored, first_line, to_rgb
from ml.types import DisplayRange, ImageU8

_MAX_ASPECT_ERROR = 0.02  # a label or macro image is of quite another shape


class TiledTiffReader:
    """Reads regions of the pages that form a pyramid; other pages are not reachable."""

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
        pages = pyramid_pages(read_directories(path))
        first = pages[0][1]
        require_slide_size(first.width_px, first.height_px)
        require_tile_size(first.tile_width_px, first.tile_height_px)
        for _, page in pages:
            require_readable(page, by_openslide=False)
        self._pages = [number for number, _ in pages]
        self._images: dict[tuple[int, int], Any] = {}
        self.stored: tuple[StoredLevel, ...] = tuple(
            StoredLevel(
                d.width_px,
                d.height_px,
                downsample=(first.width_px / d.width_px + first.height_px / d.height_px) / 2,
                directory=d,
            )
            for _, d in pages
        )
        self.icc_profile = rgb_profile(first.icc_profile)
        self.mpp = mpp_from_resolution(
            first.x_resolution, first.y_resolution, first.resolution_unit
        )
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
        values, has_alpha = self._values(level, left, top, right - left, bottom - top)
        if self.display_range is not None:
            values = shown(values, self.display_range, has_alpha=has_alpha)
        out[top - y : bottom - y, left - x : right - x] = values
        return out

    def _values(self, level: int, x: int, y: int, width: int, height: int) -> tuple[Values, bool]:
        """The stored values of a box inside a level; whether their last channel is opacity."""
        try:
            image = self._image(level)
            return image.crop(x, y, width, height).numpy(), bool(image.hasalpha())
        except pyvips.Error as error:
            raise CorruptFileError(
                f"level {level} at ({x}, {y}) cannot be decoded: {first_line(error)}"
            ) from error

    def _range(self) -> DisplayRange:
        """As the file states it, else from the values of its coarsest level."""
        level = self.stored[-1]

        def colors(x: int, y: int, width: int, height: int) -> Values:
            values, has_alpha = self._values(len(self.stored) - 1, x, y, width, height)
            return values[..., :-1] if has_alpha else values

        values = sampled(colors, level.width_px, level.height_px)
        return range_of(values, stated_depth(self._path))

    def close(self) -> None:
        """Let the file go."""
        self._images.clear()

    def _image(self, level: int) -> Any:
        key = (os.getpid(), level)
        image = self._images.get(key)
        if image is None:
            # revalidate: a handle that another process opened would share its file offset
            image = pyvips.Image.tiffload(
                str(self._path), page=self._pages[level], access="random", revalidate=True
            )
            directory = self.stored[level].directory
            if directory is not None and self._is_deep:
                image = as_stored(image, directory)
            else:
                image = to_rgb(image)
            image = self._images.setdefault(key, image)
        return image


def pyramid_pages(directories: list[TiffDirectory]) -> list[tuple[int, TiffDirectory]]:
    """(page number, directory) of the first tiled page and of the smaller ones of its shape.

    Raises:
        CorruptFileError: the first page is not stored in usable tiles.
        UnsupportedFormatError: its colours are stored in tiles of their own.
    """
    first = directories[0]
    if first.planar == PLANES_APART:
        raise UnsupportedFormatError(
            "the TIFF file stores each colour in tiles of its own (planar configuration 2), which "
            "can be read in 8 bits and upright only; save it with the colours of a pixel together"
        )
    if not first.is_tiled or not fits_grid(first):
        raise CorruptFileError("the TIFF file's first page is not stored in usable tiles")
    found = [(0, first)]
    for number, page in enumerate(directories[1:], start=1):
        last = found[-1][1]
        if not page.is_tiled or not fits_grid(page) or page.width_px >= last.width_px:
            continue
        aspect = (page.width_px / page.height_px) / (first.width_px / first.height_px)
        # a page of a few pixels has a rounded shape
        if abs(aspect - 1) <= _MAX_ASPECT_ERROR + 2 / min(page.width_px, page.height_px):
            found.append((number, page))
    return found
