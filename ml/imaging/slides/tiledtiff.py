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
from ml.imaging.formats.tiff_coding import require_readable
from ml.imaging.limits import require_slide_size, require_tile_size
from ml.imaging.slides.grid import GENERIC, StoredLevel, fits_grid
from ml.imaging.slides.metadata import mpp_from_resolution
from ml.imaging.slides.readers import Reader
from ml.imaging.slides.stills import first_line, to_rgb
from ml.types import ImageU8

_MAX_ASPECT_ERROR = 0.02  # a label or macro image is of quite another shape


class TiledTiffReader:
    """Reads regions of the pages that form a pyramid; other pages are not reachable."""

    vendor = GENERIC
    properties: Mapping[str, str] = {}

    def __init__(self, path: Path, *, described_by: Reader | None = None) -> None:
        """Open the file; another reader of it may know its vendor, properties and scale."""
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
        self.icc_profile = first.icc_profile
        self.mpp = mpp_from_resolution(
            first.x_resolution, first.y_resolution, first.resolution_unit
        )
        if described_by is not None:
            self.vendor, self.properties = described_by.vendor, described_by.properties
            self.mpp = described_by.mpp

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y), white outside."""
        stored = self.stored[level]
        out: ImageU8 = np.full((height, width, 3), 255, np.uint8)
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + width, stored.width_px), min(y + height, stored.height_px)
        if right <= left or bottom <= top:
            return out
        try:
            region = self._image(level).crop(left, top, right - left, bottom - top)
            pixels = region.numpy()
        except pyvips.Error as error:
            raise CorruptFileError(
                f"level {level} at ({x}, {y}) cannot be decoded: {first_line(error)}"
            ) from error
        out[top - y : bottom - y, left - x : right - x] = pixels
        return out

    def close(self) -> None:
        """Let the file go."""
        self._images.clear()

    def _image(self, level: int) -> Any:
        key = (os.getpid(), level)
        image = self._images.get(key)
        if image is None:
            # revalidate: a handle that another process opened would share its file offset
            image = to_rgb(
                pyvips.Image.tiffload(
                    str(self._path), page=self._pages[level], access="random", revalidate=True
                )
            )
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
