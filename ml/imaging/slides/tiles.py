"""Tiles of a canvas in the file's grid: stored JPEG bytes passed through, others decoded.

Every tile has its level's full tile size. At the right and bottom edge a tile reaches beyond the
slide: a stored tile is padded as its writer padded it, a decoded one is padded white. Viewers clip
both to the level's size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError
from ml.imaging.formats.tiff import JPEG, RGB, YCBCR, TiffDirectory
from ml.imaging.limits import MAX_TILE_BYTES
from ml.imaging.slides.jpeg import (
    MEDIA_TYPE,
    TILE_QUALITY,
    JpegFrame,
    encode_jpeg,
    read_frame_header,
    standalone_header,
)
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.types import DisplayRange, ImageU8, Level

_HEADER_BYTES = 64 * 1024  # tables, comments and profiles of one tile
_MIN_BYTES = 2  # shorter data is no tile, even without its start marker
_SOF_BASELINE, _SOF_EXTENDED, _SOF_PROGRESSIVE = 0xC0, 0xC1, 0xC2  # ITU-T T.81, table B.1


class EncodedTile(NamedTuple):
    """One encoded tile; ``passthrough``: its coded pixels are those of the file."""

    data: bytes
    media_type: str
    passthrough: bool


class StoredCoding(NamedTuple):
    """Coding of a level's stored tiles.

    Attributes:
        is_rgb: Samples are RGB, not YCbCr.
        is_baseline: Sequential, 8 bits, supported by every JPEG decoder.
    """

    is_rgb: bool
    is_baseline: bool


class _Index(NamedTuple):
    """Index of a level's stored tiles, as plain sequences of int for speed.

    Offsets and counts exclude each tile's start marker (2 bytes): the header begins with one.
    ``plain_header`` is the same without the colour profile.
    """

    columns: int
    rows: int
    offsets: memoryview
    counts: memoryview
    header: bytes
    plain_header: bytes
    coding: StoredCoding


class TileOutsideError(BadInputError):
    """The level has no tile at that column and row."""

    code = "tile-outside"


class TileSource:
    """Tiles of one slide or still. Thread-safe, survives a fork; use as a context manager.

    Attributes:
        levels: index 0 is the finest; those not ``stored`` are computed from the nearest finer
            stored level, block by block.
        icc_profile: carried by every tile.
    """

    def __init__(self, path: str | Path, *, display_range: DisplayRange | None = None) -> None:
        """Open the file; the range is as in ``open_slide``."""
        self._slide: SlideImage = open_slide(path, display_range=display_range)
        self.levels: tuple[Level, ...] = self._slide.info.levels
        self.icc_profile = self._slide.icc_profile
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._closed = False
        try:
            size = os.fstat(self._fd).st_size
            self._indexes: list[_Index | None] = [
                self._index(level.directory, size) for level in self._slide.stored
            ] + [None] * (len(self.levels) - len(self._slide.stored))
        except BaseException:
            self.close()
            raise

    def tile(self, level: int, col: int, row: int, *, with_profile: bool = True) -> EncodedTile:
        """One tile as JPEG.

        Args:
            with_profile: carry the colour profile, where the file has one.
        Raises:
            TileOutsideError: no such level, column or row.
            CorruptFileError: the stored tile cannot be read.
        """
        if level < 0 or level >= len(self._indexes):
            raise TileOutsideError(f"no level {level}: the slide has 0 to {len(self.levels) - 1}")
        index = self._indexes[level]
        if index is None:
            return self._decode_tile(level, col, row, with_profile=with_profile)
        if not (0 <= col < index.columns and 0 <= row < index.rows):
            raise self._outside(level, col, row)
        at = row * index.columns + col
        count = index.counts[at]
        if count < _MIN_BYTES:  # a sparse tile
            return self._decode_tile(
                level,
                col,
                row,
                with_profile=with_profile,
                as_rgb=index.coding.is_rgb and not with_profile,
            )
        body = os.pread(self._fd, count, index.offsets[at])
        if len(body) != count:
            raise CorruptFileError(f"the file is truncated: tile ({col}, {row}) of level {level}")
        header = index.header if with_profile else index.plain_header
        return EncodedTile(header + body, MEDIA_TYPE, True)

    def pixels_read(self, size_l0: tuple[int, int], out_px: tuple[int, int]) -> int:
        """Number of pixels that ``region`` reads: see ``SlideImage.pixels_read``."""
        return self._slide.pixels_read(size_l0, out_px)

    def region(
        self, xy_l0: tuple[int, int], size_l0: tuple[int, int], out_px: tuple[int, int]
    ) -> ImageU8:
        """Read a rectangle at any size: see ``SlideImage.read_region``."""
        return self._slide.read_region(xy_l0, size_l0, out_px)

    def passes_through(self, level: int) -> bool:
        """Return whether stored JPEG tiles of that level go out undecoded."""
        return self._indexes[level] is not None

    def coding(self, level: int) -> StoredCoding | None:
        """Coding of a level's tiles that are sent without decoding; None if there are none."""
        index = self._indexes[level]
        return None if index is None else index.coding

    def lengths(self, level: int) -> npt.NDArray[np.int64] | None:
        """Bytes of each tile that goes out undecoded without the colour profile: (N,) int64.

        Row by row; 0 if a tile is missing and white goes out instead. None if all are decoded.
        """
        index = self._indexes[level]
        if index is None:
            return None
        counts = np.asarray(index.counts)[: index.columns * index.rows]
        byte_counts: npt.NDArray[np.int64] = np.where(
            counts < _MIN_BYTES, 0, counts + len(index.plain_header)
        )
        return byte_counts

    def close(self) -> None:
        """Close the file; twice is harmless."""
        if not self._closed:
            self._closed = True
            os.close(self._fd)
            self._slide.close()

    def __enter__(self) -> TileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    def _index(self, directory: TiffDirectory | None, file_size: int) -> _Index | None:
        """The index of a level whose tiles can be passed through, None if they cannot."""
        if directory is None or not _is_rgb_jpeg(directory):
            return None
        counts, offsets = directory.counts, directory.offsets
        ends = offsets + counts
        # even noise at full quality is hardly longer than its samples: a longer tile is refused
        longest = min(MAX_TILE_BYTES, 2 * _tile_bytes(directory) + _HEADER_BYTES)
        if np.any((counts > longest) | (ends > file_size) | (ends < offsets)):
            return None
        present = np.flatnonzero(counts >= 4)
        if not len(present):
            return None
        first = int(present[0])
        try:
            frame = read_frame_header(os.pread(self._fd, int(counts[first]), int(offsets[first])))
        except CorruptFileError:
            return None
        header, plain_header = (
            _header(directory, frame, profile) for profile in (self.icc_profile, None)
        )
        if header is None or plain_header is None:
            return None
        return _Index(
            directory.columns,
            directory.rows,
            _plain(offsets, 2),
            _plain(counts, -2),
            header,
            plain_header,
            StoredCoding(directory.photometric == RGB, frame.coding == _SOF_BASELINE),
        )

    def _decode_tile(
        self, level: int, col: int, row: int, *, with_profile: bool, as_rgb: bool = False
    ) -> EncodedTile:
        grid = self.levels[level]
        width, height = grid.tile_width_px, grid.tile_height_px
        x, y = col * width, row * height
        if not (0 <= x < grid.width_px and 0 <= y < grid.height_px):
            raise self._outside(level, col, row)
        if grid.stored:
            rgb = self._slide.read_level(level, (x, y), (width, height))
        else:
            scale = grid.downsample
            rgb = self._slide.read_region(
                (x * scale, y * scale), (width * scale, height * scale), (width, height)
            )
        profile = self.icc_profile if with_profile else None
        data = encode_jpeg(rgb, quality=TILE_QUALITY, icc_profile=profile, as_rgb=as_rgb)
        return EncodedTile(data, MEDIA_TYPE, False)

    def _outside(self, level: int, col: int, row: int) -> TileOutsideError:
        grid = self.levels[level]
        columns = -(-grid.width_px // grid.tile_width_px)
        rows = -(-grid.height_px // grid.tile_height_px)
        return TileOutsideError(
            f"no tile ({col}, {row}) at level {level}: it has {columns} x {rows} tiles"
        )


def _header(directory: TiffDirectory, frame: JpegFrame, icc_profile: bytes | None) -> bytes | None:
    """Bytes sent before each tile, None if a browser would show different pixels.

    Args:
        frame: Frame of one of the tiles.
    """
    size = (directory.tile_width_px, directory.tile_height_px)
    plain = frame.coding in (_SOF_BASELINE, _SOF_EXTENDED, _SOF_PROGRESSIVE)
    if not plain or frame.precision != 8 or frame.components != 3:
        return None
    if (frame.width_px, frame.height_px) != size:
        return None
    transform = 0 if directory.photometric == RGB else 1
    if transform == 0 and frame.has_jfif:
        return None  # JFIF means YCbCr to every decoder, whatever else is there
    if frame.adobe_transform not in (None, transform):
        return None
    is_stated = frame.has_jfif or frame.adobe_transform is not None
    return standalone_header(
        directory.jpeg_tables,
        adobe_transform=None if is_stated else transform,
        icc_profile=icc_profile,
    )


def _plain(values: npt.NDArray[np.uint64], shift: int) -> memoryview:
    """Shift values, as a view of int, three times faster to index than the array."""
    return memoryview((values.astype(np.int64) + shift).data)


def _tile_bytes(directory: TiffDirectory) -> int:
    return directory.tile_width_px * directory.tile_height_px * directory.samples


def _is_rgb_jpeg(directory: TiffDirectory) -> bool:
    return (
        directory.compression == JPEG
        and directory.photometric in (RGB, YCBCR)
        and directory.samples == 3
        and directory.bits in ((8, 8, 8), (8,))
    )
