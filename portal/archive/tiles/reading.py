"""Tiles of canvases: open files cached per process, decoded tiles cached in memory and on disk.

A stored tile is sent as it is in the file; only decoded tiles are written to the cache folder,
which may be emptied at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ml.errors import MlError
from ml.imaging.slides.tiles import TileSource
from ml.types import DisplayRange
from portal.archive.models import Canvas, CanvasKind
from portal.archive.storage import files as storage
from portal.archive.tiles.cache import SOURCES
from portal.core.errors import NotFoundError, UnavailableError

MEDIA_TYPE = "image/jpeg"
SCHEME = "2"
"""Part of every ETag; raise it when the same file gives other tile bytes than before."""


@dataclass(frozen=True, slots=True)
class TilePlane:
    """Data of a canvas that serving its tiles needs; no database object.

    Attributes:
        path: File of the tiles, relative to the storage root.
        grid: (columns, rows) of each level, coarsest first: indexed by z.
        display_range: Display range of pixels of more than 8 bits.
    """

    key: str
    path: str
    cache: Path
    grid: tuple[tuple[int, int], ...]
    display_range: DisplayRange | None = None


def plane_of(canvas: Canvas) -> TilePlane:
    """The tile plane of a canvas; a video has none (``NotFoundError``)."""
    if canvas.kind == CanvasKind.VIDEO or not canvas.levels:
        raise NotFoundError("This canvas has no tiles; a video is shown frame by frame.")
    grid = tuple(
        (
            -(-level["width_px"] // level["tile_width_px"]),
            -(-level["height_px"] // level["tile_height_px"]),
        )
        for level in reversed(canvas.levels)
    )
    return TilePlane(
        key=f"{SCHEME}-{canvas.picture_tag}",
        path=canvas.pixels_path,
        cache=storage.cache_folder(canvas.pk) / f"tiles-{SCHEME}-{canvas.picture_tag}",
        grid=grid,
        display_range=canvas.shown_range,
    )


def tile_etag(plane: TilePlane, z: int, x: int, y: int) -> str:
    """ETag of a tile: the same bytes always have the same one."""
    return f'"{plane.key}-{z}-{x}-{y}"'


def has_tile(plane: TilePlane, z: int, x: int, y: int) -> bool:
    """Return whether the grid holds that tile; z 0 is the coarsest level."""
    if not 0 <= z < len(plane.grid):
        return False
    columns, rows = plane.grid[z]
    return 0 <= x < columns and 0 <= y < rows


def tile_read(plane: TilePlane, z: int, x: int, y: int) -> bytes:
    """JPEG bytes of one tile.

    Raises:
        NotFoundError: outside the grid.
        UnavailableError: the stored file cannot be read.
    """
    if not has_tile(plane, z, x, y):
        raise NotFoundError(f"There is no tile {z}/{x}/{y} on this canvas.")
    level = len(plane.grid) - 1 - z
    try:
        source = SOURCES.get(plane.path, plane.display_range)
        if source.passes_through(level):
            return source.tile(level, x, y).data
        return _decode_tile(plane, source, z, x, y)
    except (OSError, MlError) as error:
        raise UnavailableError("This tile cannot be read from the stored file.") from error


def _decode_tile(plane: TilePlane, source: TileSource, z: int, x: int, y: int) -> bytes:
    path = plane.cache / str(z) / f"{x}_{y}.jpg"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        data = source.tile(len(plane.grid) - 1 - z, x, y).data
        storage.file_publish(path, data)
        return data
