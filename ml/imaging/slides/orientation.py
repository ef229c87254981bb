"""Slides whose pixels are stored rotated or mirrored: the TIFF tag Orientation, values 2 to 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ml.imaging.formats.tiff import TRANSPOSED, TiffDirectory
from ml.imaging.slides.backends import Reader
from ml.imaging.slides.grid import StoredLevel
from ml.types import ImageU8

UPRIGHT, _TRANSVERSE = 1, 8
_MIRRORED_X = (2, 3, 7, 8)
_MIRRORED_Y = (3, 4, 6, 7)


def is_turned(directory: TiffDirectory) -> bool:
    """Return whether the stored pixels are rotated or mirrored."""
    return _stated_orientation(directory) not in (0, UPRIGHT)


def upright(reader: Reader) -> Reader:
    """Return the reader itself, or one that rotates its levels upright."""
    orientations = _orientations([level.directory for level in reader.stored])
    if all(orientation == UPRIGHT for orientation in orientations):
        return reader
    return UprightReader(reader, orientations)


def _orientations(directories: Sequence[TiffDirectory | None]) -> list[int]:
    """The orientation of each level of a pyramid, 1 to 8.

    A reduced page that states none, or one that does not fit its shape, was made from the stored
    first page.
    """
    first = _stated_orientation(directories[0]) or UPRIGHT
    orientations = [_stated_orientation(directory) or first for directory in directories]
    return [
        orientation if (orientation in TRANSPOSED) == (first in TRANSPOSED) else first
        for orientation in orientations
    ]


class UprightReader:
    """Levels of another reader, rotated upright.

    No stored tile is a tile of the picture, so no level has a ``directory``.
    """

    def __init__(self, reader: Reader, orientations: Sequence[int]) -> None:
        self._reader, self._orientations = reader, tuple(orientations)
        self.vendor, self.icc_profile = reader.vendor, reader.icc_profile
        self.properties: Mapping[str, str] = reader.properties
        self.display_range = reader.display_range
        mpp_x, mpp_y = reader.mpp
        self.mpp = (mpp_y, mpp_x) if self._orientations[0] in TRANSPOSED else (mpp_x, mpp_y)
        self.stored: tuple[StoredLevel, ...] = tuple(
            _upright_level(level, orientation)
            for level, orientation in zip(reader.stored, self._orientations, strict=True)
        )

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y) of the upright picture."""
        orientation, stored = self._orientations[level], self._reader.stored[level]
        is_across = orientation in TRANSPOSED
        if is_across:
            x, y, width, height = y, x, height, width
        if orientation in _MIRRORED_X:
            x = stored.width_px - x - width
        if orientation in _MIRRORED_Y:
            y = stored.height_px - y - height
        pixels = self._reader.read(level, x, y, width, height)
        if orientation in _MIRRORED_X:
            pixels = pixels[:, ::-1]
        if orientation in _MIRRORED_Y:
            pixels = pixels[::-1]
        return np.ascontiguousarray(pixels.swapaxes(0, 1) if is_across else pixels)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def _stated_orientation(directory: TiffDirectory | None) -> int:
    """Orientation tag of a directory, 0 if it is missing or invalid."""
    tag_value = directory.orientation if directory is not None else 0
    return tag_value if UPRIGHT <= tag_value <= _TRANSVERSE else 0


def _upright_level(level: StoredLevel, orientation: int) -> StoredLevel:
    size = (level.width_px, level.height_px)
    width_px, height_px = size[::-1] if orientation in TRANSPOSED else size
    return replace(level, width_px=width_px, height_px=height_px, directory=None)
