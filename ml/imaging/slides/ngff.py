"""Conversion of an OME-NGFF image to a tiled pyramid, read in rows of chunks.

Channels are added up in their colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ml.errors import TooLargeError
from ml.imaging.formats.ngff import NgffChannel, NgffImage, find_image
from ml.imaging.formats.tiff_layout import has_shape
from ml.imaging.formats.zarr_arrays import read_array, read_chunk
from ml.imaging.formats.zarr_store import ZarrStore, open_zarr
from ml.imaging.limits import MAX_ZARR_ROW_BYTES
from ml.imaging.slides.display_range import StatedDepth, range_of, sampled
from ml.imaging.slides.level_content import Read, same_content
from ml.imaging.slides.metadata import plausible_mpp
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.row_stream import image_of_rows
from ml.imaging.slides.stills import UM_PER_MM
from ml.types import ImageU8, Progress, no_progress

Number = TypeVar("Number", bound=np.generic)


def write_ngff_pyramid(source: Path, target: Path, progress: Progress = no_progress) -> Path:
    """Write the image of a hierarchy in an archive as ``write_pyramid`` does.

    Raises:
        UnsupportedFormatError, CorruptFileError, TooLargeError: as ``find_image``; a chunk that is
            cut or damaged; chunks of which a row is too large for the memory.
    """
    with open_zarr(source) as store:
        image = _with_windows(find_image(store))
        with image_of_rows(image.size_px, _rows(image)) as picture:
            return write_pyramid(_set_resolution(picture, image), target, progress=progress)


def ngff_levels(store: ZarrStore, image: NgffImage) -> tuple[str, ...]:
    """Levels of an image with the shape and content of its first.

    Raises:
        UnsupportedFormatError, CorruptFileError, TooLargeError: as ``find_image``.
    """
    image = _with_windows(image)
    matching = [image]
    for level in image.levels[1:]:
        path = f"{image.path}/{level}" if image.path else level
        coarser = replace(image, levels=(level,), array=read_array(store, path))
        sizes = coarser.size_px, matching[-1].size_px
        if (
            len(coarser.array.shape) == len(image.axes)
            and min(coarser.size_px) >= 1
            and coarser.size_px < matching[-1].size_px
            and has_shape(coarser.size_px, image.size_px)
            and same_content(
                _level_reader(coarser), sizes[0], _level_reader(matching[-1]), sizes[1]
            )
        ):
            matching.append(coarser)
    return tuple(image_levels.levels[0] for image_levels in matching)


def _with_windows(image: NgffImage) -> NgffImage:
    """Measure the windows of 16-bit channels that state none.

    As for other files of more than 8 bits, see ``range_of``; otherwise values of 10 or 12 bits
    would be nearly black.
    """
    if image.array.dtype.itemsize == 1:
        return image
    width, height = image.size_px
    channels = []
    for channel in image.channels:
        if not channel.is_stated:
            read = _boxes(image, partial(_values, image, channel))
            measured = range_of(sampled(read, width, height), StatedDepth())
            channel = replace(channel, low=measured.low, high=measured.high)  # noqa: PLW2901
        channels.append(channel)
    return replace(image, channels=tuple(channels))


def _level_reader(image: NgffImage) -> Read:
    """Return a function that reads boxes of a level."""
    return _boxes(image, partial(_block, image))


def _boxes(
    image: NgffImage, block: Callable[[int, int], npt.NDArray[Number]]
) -> Callable[[int, int, int, int], npt.NDArray[Number]]:
    """Return a function that reads boxes (x, y, width, height) from blocks by row and column."""

    def read(x: int, y: int, width: int, height: int) -> npt.NDArray[Number]:
        high, wide = image.array.chunk[-2:]
        rows, columns = (
            range(y // high, -(-(y + height) // high)),
            range(x // wide, -(-(x + width) // wide)),
        )
        blocks = [
            np.concatenate([block(row, column) for column in columns], axis=1) for row in rows
        ]
        top, left = y - rows[0] * high, x - columns[0] * wide
        return np.concatenate(blocks)[top : top + height, left : left + width]

    return read


def _set_resolution(picture: Any, image: NgffImage) -> Any:
    mpp_x, mpp_y = plausible_mpp(image.mpp_x, image.mpp_y)
    if mpp_x is None or mpp_y is None:
        return picture
    return picture.copy(xres=UM_PER_MM / mpp_x, yres=UM_PER_MM / mpp_y)


def _rows(image: NgffImage) -> Iterator[ImageU8]:
    """(rows of a chunk, W, 3) uint8, from top to bottom."""
    width, height = image.size_px
    high, wide = image.array.chunk[-2:]
    row_bytes = 3 * min(high, height) * width
    if row_bytes > MAX_ZARR_ROW_BYTES:
        raise TooLargeError(
            f"a row of the OME-Zarr image's chunks has {row_bytes:,} bytes; the limit is "
            f"{MAX_ZARR_ROW_BYTES:,}; write it with chunks of less height"
        )
    for y in range(-(-height // high)):
        row: ImageU8 = np.empty((min(high, height - y * high), width, 3), np.uint8)
        for x in range(-(-width // wide)):
            row[:, x * wide : (x + 1) * wide] = _block(image, y, x)
        yield row


def _block(image: NgffImage, y: int, x: int) -> ImageU8:
    """The pixels of a chunk, all shown channels added up: (h, w, 3) uint8, cut at the edges."""
    sum_rgb: Any = np.float32(0)
    read: tuple[tuple[int, ...], npt.NDArray[Any]] | None = None
    for channel in image.channels:
        index, within = _place(image, channel, y, x)
        if read is None or read[0] != index:  # the next channel is often in the same one
            read = index, read_chunk(image.array, index)
        values = read[1][within]
        share = (values.astype(np.float32) - channel.low) / (channel.high - channel.low)
        sum_rgb = sum_rgb + np.clip(share, 0, 1)[..., None] * np.asarray(channel.color, np.float32)
    return np.clip(np.rint(sum_rgb), 0, 255).astype(np.uint8)


def _values(image: NgffImage, channel: NgffChannel, y: int, x: int) -> npt.NDArray[Any]:
    """(h, w) stored numbers of a channel."""
    index, within = _place(image, channel, y, x)
    values: npt.NDArray[Any] = read_chunk(image.array, index)[within]
    return values


def _place(
    image: NgffImage, channel: NgffChannel, y: int, x: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Index of the chunk that holds a channel, and of the channel's plane within it."""
    at = {**image.plane, "c": channel.index}
    before = [at[axis] for axis in image.axes[:-2]]
    pairs = list(zip(before, image.array.chunk[:-2], strict=True))
    return (*(a // size for a, size in pairs), y, x), tuple(a % size for a, size in pairs)
