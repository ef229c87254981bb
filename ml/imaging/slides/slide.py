"""Common interface of slides and stills: levels, microns per pixel, regions at any scale."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

from ml.errors import CorruptFileError, EmptyRegionError, ShapeError, UnsupportedFormatError
from ml.imaging.formats.sniff import read_head, sniff
from ml.imaging.formats.tiff import APERIO_JPEG2000, SEPARATE_PLANES, TiffDirectory
from ml.imaging.formats.tiff_coding import ZSTD, is_plain, require_readable
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.slides.backends import OpenSlideReader, Reader, StillReader, slide_vendor
from ml.imaging.slides.grid import GENERIC, NATIVE_VENDORS, StoredLevel, plan_levels
from ml.imaging.slides.level_content import levels_shown
from ml.imaging.slides.metadata import allowed_properties, number_or_none, plausible_mpp
from ml.imaging.slides.orientation import is_turned, upright
from ml.imaging.slides.tiled_tiff import TiledTiffReader
from ml.types import DisplayRange, ImageU8, SlideInfo

BLOCK_PIXELS = 16_000_000
"""Largest number of source pixels decoded at once; larger regions are read block by block."""
MAX_OUT_PIXELS = 400_000_000  # 1.2 GB of RGB in memory
_MARGIN_PX = 3  # beyond the filter's reach, for rounding at both ends


def open_slide(path: str | Path, *, display_range: DisplayRange | None = None) -> SlideImage:
    """Open a slide or a still.

    The formats of OpenSlide except Sakura, plain tiled TIFF pyramids, and JPEG, PNG, TIFF, WebP,
    BMP images (one stored level, turned upright). Label and macro images cannot be reached through
    it: a level is used only where its shape and its pixels are those of level 0, whatever the file
    states.

    Args:
        display_range: of pixels of more than 8 bits; by default as the file states it, or as its
            values suggest.
    Raises:
        UnsupportedFormatError: neither a slide nor an image.
        CorruptFileError: cut or damaged.
        TooLargeError: it claims more pixels than ``ml.imaging.limits`` allows.
    """
    path = Path(path)
    reader = upright(_reader(path, display_range))
    if display_range is None or reader.display_range is None or len(reader.stored) == 1:
        return SlideImage(reader, path=path)
    # the choice of levels must not depend on the display range
    with closing(upright(_reader(path, None))) as comparison:
        return SlideImage(reader, path=path, compared=comparison)


def _reader(path: Path, display_range: DisplayRange | None) -> Reader:
    vendor = slide_vendor(path)
    if vendor is not None:
        return _slide_reader(path, vendor, display_range)
    kind = sniff(path)
    if kind == "video":
        raise UnsupportedFormatError("the file is a video; expected a slide or an image")
    if kind == "slide" and not is_tiff(read_head(path)):
        raise CorruptFileError(
            "the slide cannot be opened: it is damaged, or of a variant that is not supported"
        )
    return (TiledTiffReader if kind == "slide" else StillReader)(path, display_range)


def _slide_reader(path: Path, vendor: str, display_range: DisplayRange | None) -> Reader:
    """Open with OpenSlide, or with libvips if OpenSlide would misinterpret the pixels."""
    if vendor not in NATIVE_VENDORS:
        return OpenSlideReader(path, vendor)
    first = read_layout(path).levels[0]
    if first.compression in APERIO_JPEG2000:
        return OpenSlideReader(path, vendor)
    if is_plain(first) and not is_turned(first) and (vendor != GENERIC or _needs_openslide(first)):
        require_readable(first, by_openslide=True)
        return OpenSlideReader(path, vendor)
    if vendor == GENERIC:
        return TiledTiffReader(path, display_range)
    with closing(OpenSlideReader(path, vendor)) as described_by:
        return TiledTiffReader(path, display_range, described_by=described_by)


def _needs_openslide(first: TiffDirectory) -> bool:
    """Return whether only OpenSlide can read a plain TIFF; it sees no SubIFDs or later images."""
    is_first = first.page == 0 and first.sub_ifd < 0
    return is_first and (first.compression == ZSTD or first.planar == SEPARATE_PLANES)


class SlideImage:
    """An open slide. Reads are thread-safe and survive a fork. Use as a context manager.

    Attributes:
        info: Size, levels (those not ``stored`` are computed on reading), microns per pixel and
            allow-listed metadata.
        stored: The levels in the file, finest first.
        icc_profile: The file's ICC profile; pixels are returned unconverted.
        path: Path of the file, for opening it again; None if there is no file.
    """

    def __init__(
        self, reader: Reader, *, path: Path | None = None, compared: Reader | None = None
    ) -> None:
        """Wrap a reader.

        Args:
            compared: reader of the same levels that is compared to choose the displayed ones.
        """
        self._reader, self.path = reader, path
        levels = levels_shown(compared or reader, path)
        self.stored: tuple[StoredLevel, ...] = tuple(reader.stored[level] for level in levels)
        self._levels = levels
        mpp_x, mpp_y = plausible_mpp(*reader.mpp)
        self.icc_profile: bytes | None = reader.icc_profile
        self.info = SlideInfo(
            width_px=self.stored[0].width_px,
            height_px=self.stored[0].height_px,
            levels=plan_levels(self.stored),
            mpp_x=mpp_x,
            mpp_y=mpp_y,
            vendor=reader.vendor,
            objective_power=number_or_none(reader.properties.get("openslide.objective-power")),
            properties=allowed_properties(reader.properties),
            display_range=reader.display_range,
        )

    def read_level(self, level: int, xy_level: tuple[int, int], size: tuple[int, int]) -> ImageU8:
        """Pixels of one stored level, unscaled.

        Args:
            xy_level: top left corner in pixels of that level.
            size: (width, height) in pixels of that level.
        Returns:
            (height, width, 3) uint8 RGB, white outside.
        """
        return self._reader.read(self._levels[level], *xy_level, *size)

    def read_region(
        self,
        xy_l0: tuple[float, float],
        size_l0: tuple[float, float],
        out_px: tuple[int, int],
    ) -> ImageU8:
        """Read a rectangle of the slide, resampled to exactly ``out_px``.

        Read from the coarsest stored level that is at least as fine as requested, block by block:
        memory is bounded by the output and one block.

        Args:
            xy_l0: Top left corner, level-0 pixels, x right, y down; may be outside.
            size_l0: (width, height) in level-0 pixels, positive.
            out_px: (width, height) of the result.
        Returns:
            (out height, out width, 3) uint8 RGB, white where outside the slide or transparent.
        Raises:
            EmptyRegionError: A size is not positive or not finite.
            ShapeError: ``out_px`` is not positive or has more than 400 million pixels.
        """
        _check_region(xy_l0, size_l0, out_px)
        level = self._level_for(min(size_l0[0] / out_px[0], size_l0[1] / out_px[1]))
        downsample = self.stored[level].downsample
        scale = (size_l0[0] / out_px[0] / downsample, size_l0[1] / out_px[1] / downsample)
        origin = (xy_l0[0] / downsample, xy_l0[1] / downsample)
        if scale == (1.0, 1.0) and origin[0].is_integer() and origin[1].is_integer():
            return self.read_level(level, (int(origin[0]), int(origin[1])), out_px)
        out: ImageU8 = np.empty((out_px[1], out_px[0], 3), np.uint8)
        step = max(1, int((BLOCK_PIXELS / (scale[0] * scale[1])) ** 0.5))
        for top in range(0, out_px[1], step):
            for left in range(0, out_px[0], step):
                size = (min(step, out_px[0] - left), min(step, out_px[1] - top))
                corner = (origin[0] + left * scale[0], origin[1] + top * scale[1])
                block = self._read_scaled_block(level, corner, scale, size)
                out[top : top + size[1], left : left + size[0]] = block
        return out

    def pixels_read(self, size_l0: tuple[float, float], out_px: tuple[int, int]) -> int:
        """Number of pixels of a stored level that ``read_region`` reads for these sizes."""
        level = self._level_for(min(size_l0[0] / out_px[0], size_l0[1] / out_px[1]))
        return math.ceil(size_l0[0] * size_l0[1] / self.stored[level].downsample ** 2)

    def read_scaled(
        self, xy_l0: tuple[float, float], size_l0: tuple[float, float], downsample: float
    ) -> ImageU8:
        """``read_region`` at a downsample: about size_l0 / downsample pixels, at least 1 x 1."""
        out = (max(1, round(size_l0[0] / downsample)), max(1, round(size_l0[1] / downsample)))
        return self.read_region(xy_l0, size_l0, out)

    def thumbnail(self, max_px: int) -> ImageU8:
        """Overview, longer side at most ``max_px``, never enlarged: (h, w, 3) uint8."""
        width, height = self.info.width_px, self.info.height_px
        scale = max(1.0, max(width, height) / max_px)
        out = (max(1, round(width / scale)), max(1, round(height / scale)))
        return self.read_region((0, 0), (width, height), out)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> SlideImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _level_for(self, downsample: float) -> int:
        candidates = [
            index
            for index, level in enumerate(self.stored)
            if level.downsample <= downsample * 1.001
        ]
        return candidates[-1] if candidates else 0

    def _read_scaled_block(
        self,
        level: int,
        corner: tuple[float, float],
        scale: tuple[float, float],
        size: tuple[int, int],
    ) -> ImageU8:
        stored = self.stored[level]
        x0, x1 = _source_span(corner[0], scale[0], size[0], stored.width_px)
        y0, y1 = _source_span(corner[1], scale[1], size[1], stored.height_px)
        source = self.read_level(level, (x0, y0), (x1 - x0, y1 - y0))
        box = (
            corner[0] - x0,
            corner[1] - y0,
            min(corner[0] - x0 + size[0] * scale[0], x1 - x0),
            min(corner[1] - y0 + size[1] * scale[1], y1 - y0),
        )
        image = Image.fromarray(source).resize(size, Image.Resampling.HAMMING, box=box)
        return np.asarray(image)


def _source_span(start: float, scale: float, count: int, limit: int) -> tuple[int, int]:
    """Source pixels [low, high) that ``count`` outputs need, with the filter's margin.

    The margin stops at the slide's edge, where the filter then repeats the slide instead of mixing
    the white from beyond in.
    """
    margin = int(np.ceil(scale)) + _MARGIN_PX
    low, high = int(np.floor(start)), int(np.ceil(start + count * scale - 1e-9))
    high = max(high, low + 1)
    return min(low, max(low - margin, 0)), max(high, min(high + margin, limit))


def _check_region(
    xy_l0: tuple[float, float], size_l0: tuple[float, float], out_px: tuple[int, int]
) -> None:
    if not np.isfinite([*xy_l0, *size_l0]).all() or min(size_l0) <= 0:
        raise EmptyRegionError(
            f"a region needs finite corners and a positive size, got {size_l0} at {xy_l0}"
        )
    if min(out_px) < 1 or out_px[0] * out_px[1] > MAX_OUT_PIXELS:
        raise ShapeError(
            "out_px",
            expected=f"1 to {MAX_OUT_PIXELS:,} pixels",
            actual=f"{out_px[0]} x {out_px[1]}",
        )
