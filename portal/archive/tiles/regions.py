"""Rectangles of a canvas at any size. A rectangle that is exactly a tile is read as a tile.

The work of a request is bounded: the answer's size by the caller, the pixels read here, and the
number of concurrent reads in a process.
"""

from __future__ import annotations

import io
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from PIL import Image

from ml.errors import MlError
from ml.imaging.slides.jpeg import encode_jpeg
from ml.types import ImageU8
from portal.archive.models import Canvas
from portal.archive.storage import files as storage
from portal.archive.tiles.cache import SOURCES
from portal.archive.tiles.reading import plane_of, tile_read
from portal.core.errors import InvalidInputError, UnavailableError

MAX_READ_PIXELS = 2**26
"""Largest number of pixels read from the stored level: a picture of 2,048 px a side from levels
four times apart."""
AT_ONCE = 2  # concurrent regions; each uses a core for up to a second
PATIENCE_S = 20.0  # how long a request waits for its turn
_TURNS = threading.BoundedSemaphore(AT_ONCE)


class Box(NamedTuple):
    """A rectangle in level-0 pixels, inside its canvas."""

    left: int
    top: int
    width: int
    height: int


class TileRef(NamedTuple):
    """A tile as the canvas has it; z 0 is the coarsest level."""

    z: int
    x: int
    y: int


class ReadRegion(NamedTuple):
    """Result of a read: a tile's own JPEG, or pixels with the file's ICC profile."""

    jpeg: bytes | None
    rgb: ImageU8 | None
    icc_profile: bytes | None

    def pixels(self) -> ImageU8:
        """(height, width, 3) uint8 RGB."""
        if self.rgb is not None:
            return self.rgb
        return np.asarray(Image.open(io.BytesIO(self.jpeg or b"")).convert("RGB"))


def scale_factors(canvas: Canvas) -> dict[tuple[int, int], list[int]]:
    """The whole factors at which tiles of a canvas can be requested, by their (width, height)."""
    by_tile_size: dict[tuple[int, int], list[int]] = defaultdict(list)
    for level in canvas.levels:
        factor = _factor(level)
        factors_used = [factor_used for factors in by_tile_size.values() for factor_used in factors]
        if factor is not None and factor not in factors_used:
            by_tile_size[level["tile_width_px"], level["tile_height_px"]].append(factor)
    return dict(by_tile_size)


def region_read(canvas: Canvas, box: Box, out: tuple[int, int]) -> ReadRegion:
    """Read a rectangle, scaled to ``out`` = (width, height) px.

    Raises:
        InvalidInputError: too many pixels would have to be read for it.
        NotFoundError: a video has no plane.
        UnavailableError: the stored file cannot be read, or no turn came within ``PATIENCE_S``.
    """
    plane = plane_of(canvas)
    tile = _tile_of(canvas, box, out)
    try:
        source = SOURCES.get(plane.path, plane.display_range)
        if tile is not None:
            data = tile_read(plane, *tile)
            return _crop_tile(data, canvas.levels[len(canvas.levels) - 1 - tile.z], tile, out)
        pixels = source.pixels_read((box.width, box.height), out)
        if pixels > MAX_READ_PIXELS:
            raise InvalidInputError(
                f"This would read {pixels:,} pixels; at most {MAX_READ_PIXELS:,} are allowed. Ask"
                " for a smaller region, or for the tiles that info.json names.",
                code="too-costly",
            )
        with _turn():
            rgb = source.region((box.left, box.top), (box.width, box.height), out)
        return ReadRegion(None, rgb, source.icc_profile)
    except (OSError, MlError) as error:
        raise UnavailableError("This region cannot be read from the stored file.") from error


def thumbnail_read(canvas: Canvas) -> bytes:
    """JPEG of the whole canvas: made by its ingest, or again for another display range.

    Raises:
        OSError: it cannot be read.
        UnavailableError: as ``region_read``.
    """
    thumbnail = storage.resolve(canvas.thumbnail_path)
    if canvas.display_range == canvas.file_display_range:
        return thumbnail.read_bytes()
    path = storage.cache_folder(canvas.pk) / f"thumbnail-{canvas.picture_tag}.jpg"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    with Image.open(thumbnail) as image:
        size = image.size
    try:
        region = region_read(canvas, Box(0, 0, canvas.width_px, canvas.height_px), size)
    except InvalidInputError:  # a slide without levels: too much would be read in a request
        return thumbnail.read_bytes()
    data = encode_jpeg(region.pixels(), icc_profile=region.icc_profile)
    storage.file_publish(path, data)
    return data


@contextmanager
def _turn() -> Iterator[None]:
    if not _TURNS.acquire(timeout=PATIENCE_S):
        raise UnavailableError(
            "Other regions of images are being read.", details={"retry_after_s": 5}
        )
    try:
        yield
    finally:
        _TURNS.release()


def _factor(level: dict[str, float]) -> int | None:
    """The whole number a level is smaller by; None if its grid drifts by more than a pixel."""
    factor = round(level["downsample"])
    drift_px = abs(level["downsample"] / factor - 1) * max(level["width_px"], level["height_px"])
    return factor if drift_px <= 1.0 else None


def _tile_of(canvas: Canvas, box: Box, out: tuple[int, int]) -> TileRef | None:
    """The tile that matches a rectangle exactly, as IIIF cuts an image into tiles."""
    for z, level in enumerate(reversed(canvas.levels)):
        factor = _factor(level)
        if factor is None:
            continue
        across, down = level["tile_width_px"] * factor, level["tile_height_px"] * factor
        if box.left % across or box.top % down:
            continue
        width = min(across, canvas.width_px - box.left)
        height = min(down, canvas.height_px - box.top)
        level_size = (-(-width // factor), -(-height // factor))
        if (box.width, box.height, *out) == (width, height, *level_size):
            tile = TileRef(z, box.left // across, box.top // down)
            if tile.x * level["tile_width_px"] < level["width_px"] and (
                tile.y * level["tile_height_px"] < level["height_px"]
            ):
                return tile
    return None


def _crop_tile(
    data: bytes, level: dict[str, int], tile: TileRef, out: tuple[int, int]
) -> ReadRegion:
    """A tile cropped to the image; its own bytes if it is inside."""
    size = (level["tile_width_px"], level["tile_height_px"])
    if out == size:
        with Image.open(io.BytesIO(data)) as image:
            return ReadRegion(data, None, image.info.get("icc_profile"))
    left = (level["width_px"] - tile.x * size[0], level["height_px"] - tile.y * size[1])
    with Image.open(io.BytesIO(data)) as image:
        profile = image.info.get("icc_profile")
        visible_size = (min(out[0], left[0]), min(out[1], left[1]))
        cut = image.convert("RGB").crop((0, 0, *visible_size))
    if visible_size != out:  # a level whose size was rounded down has a pixel less than IIIF counts
        cut = cut.resize(out, Image.Resampling.BILINEAR)
    return ReadRegion(None, np.asarray(cut), profile)
