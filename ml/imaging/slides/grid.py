"""Tile grid of a canvas: the stored levels, then computed ones down to a screenful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ml.errors import UnsupportedFormatError
from ml.imaging.formats.tiff import TiffDirectory
from ml.imaging.formats.tiff_layout import TiffLayout
from ml.imaging.limits import MAX_TILE_SIDE_PX
from ml.types import Level

DEFAULT_TILE_PX = 256  # as in Deep Zoom and most scanners
COARSEST_PX = 1_024
"""Levels are added by halves until the longer side is at most this."""
GENERIC = "generic-tiff"
NATIVE_VENDORS = ("aperio", GENERIC)
"""Formats whose TIFF tiles are adjacent, so that a stored tile is a tile of the canvas.

Others (Ventana, Leica, Trestle, Philips, Hamamatsu) overlap, offset or pad their tiles.
"""


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """A stored level; ``directory`` is set if its TIFF tiles are the canvas' tiles."""

    width_px: int
    height_px: int
    downsample: float
    directory: TiffDirectory | None = None


def match_directories(
    layout: TiffLayout, sizes: Sequence[tuple[int, int]]
) -> list[tuple[int, TiffDirectory | None]]:
    """Numbers of OpenSlide's levels that are levels of the image shown, and their directories.

    Args:
        sizes: (width, height) of each level as OpenSlide gives them.
    Returns:
        None in place of a directory whose tiles are not the canvas' tiles.
    Raises:
        UnsupportedFormatError: OpenSlide would show another image.
    """
    by_size = {(level.width_px, level.height_px): level for level in layout.levels}
    first = layout.levels[0]
    if sizes[0] != (first.width_px, first.height_px):
        raise UnsupportedFormatError(
            f"the largest image of the TIFF file, {first.width_px} x {first.height_px} px, is "
            "compressed in a way that is read only of a file's first image; save it as a file of "
            "its own"
        )
    return [
        (number, by_size[size] if fits_grid(by_size[size]) else None)
        for number, size in enumerate(sizes)
        if size in by_size
    ]


def fits_grid(directory: TiffDirectory) -> bool:
    """Return whether stored tiles can be the canvas' tiles: plausible sizes, complete index."""
    return (
        min(directory.width_px, directory.height_px) >= 1
        and 16 <= directory.tile_width_px <= MAX_TILE_SIDE_PX
        and 16 <= directory.tile_height_px <= MAX_TILE_SIDE_PX
        and directory.planar == 1
        and len(directory.offsets) >= directory.columns * directory.rows
    )


def plan_levels(stored: Sequence[StoredLevel]) -> tuple[Level, ...]:
    """Plan the levels of a canvas, finest first: the stored ones, then halves of the coarsest."""
    levels = [_stored_level(level) for level in stored]
    last = levels[-1]
    while max(last.width_px, last.height_px) > COARSEST_PX:
        last = Level(
            width_px=-(-last.width_px // 2),
            height_px=-(-last.height_px // 2),
            downsample=last.downsample * 2,
            tile_width_px=DEFAULT_TILE_PX,
            tile_height_px=DEFAULT_TILE_PX,
            stored=False,
        )
        levels.append(last)
    return tuple(levels)


def _stored_level(level: StoredLevel) -> Level:
    tiff = level.directory
    return Level(
        width_px=level.width_px,
        height_px=level.height_px,
        downsample=level.downsample,
        tile_width_px=tiff.tile_width_px if tiff else DEFAULT_TILE_PX,
        tile_height_px=tiff.tile_height_px if tiff else DEFAULT_TILE_PX,
    )
