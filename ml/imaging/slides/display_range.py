"""Pixels of more than 8 bits: the range of stored values displayed from black to white.

A camera of 12 bits stores 0 to 4095 in numbers of 16 bits. Its picture would be black if the upper
8 bits were taken, so the range is taken from the file where it states one, else from the values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.imaging.formats.jpeg2000 import is_jpeg2000, jpeg2000_bits
from ml.imaging.formats.sniff import read_head
from ml.imaging.formats.tiff import read_directories
from ml.imaging.formats.tiff_coding import FLOAT, UNSIGNED, WHITE_IS_ZERO
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.formats.tiff_layout import layout_of
from ml.types import DisplayRange, ImageU8

Values = npt.NDArray[Any]
"""(H, W) or (H, W, C) stored values, whole or floating-point numbers."""
_WHITE = 255
_SHORT_BYTES = 2  # larger integers are not exact in single precision
_MIN_BITS = 8  # fewer used bits mean a dark picture, not a smaller depth
_TAIL_PERCENT = 0.05
"""Brightest and darkest values that do not count: hot pixels, texts burnt in."""
_SIGNIFICANT = re.compile(r'\bSignificantBits\s*=\s*"(\d{1,2})"')
"""An attribute of OME-XML's Pixels."""
_SAMPLE_PX, _PLACE_PX, _PLACES = 2_048, 128, 8
"""Up to this side all of a picture is sampled, of a larger one 8 x 8 places."""


@dataclass(frozen=True, slots=True)
class StatedDepth:
    """Bit depth and range that a file states for its values.

    Attributes:
        low, high: smallest and largest possible value, None if not stated.
        is_inverted: the lowest value is white.
    """

    low: float | None = None
    high: float | None = None
    is_inverted: bool = False


def stated_depth(path: Path) -> StatedDepth:
    """Read what a TIFF or JPEG 2000 file states; other formats state nothing reliable."""
    head = read_head(path)
    if is_jpeg2000(head):
        bits, _ = jpeg2000_bits(path)
        return StatedDepth(
            high=float(2**bits - 1) if bits % 8 else None
        )  # full bytes give no information
    if not is_tiff(head):
        return StatedDepth()
    pages = read_directories(path)
    first = layout_of(pages).levels[0]
    low, high = first.min_value, first.max_value
    if first.sample_format == UNSIGNED:
        low = 0.0
    match = _SIGNIFICANT.search(pages[0].description)
    if match is not None and first.sample_format != FLOAT:
        high = float(2 ** int(match[1]) - 1)
    if high is not None and high >= 2.0 ** first.bits[0] - 1:
        high = None  # the largest value of the type gives no information
    return StatedDepth(low, high, first.photometric == WHITE_IS_ZERO)


def range_of(values: Values, depth: StatedDepth) -> DisplayRange:
    """Display range from a sample of the values and the statement of the file.

    Without a statement: non-negative integers from 0 to the largest number of as many bits as they
    use, floating-point numbers within 0 to 1 from 0 to 1, others between their percentiles.
    """
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.reshape(-1)
    if not finite.size:
        return _make_range(0.0, 1.0, depth)
    low, high = (float(v) for v in np.percentile(finite, (_TAIL_PERCENT, 100 - _TAIL_PERCENT)))
    if depth.high is not None and high <= depth.high:
        return _make_range(min(depth.low or 0.0, low), depth.high, depth)
    if low < 0 or not (values.dtype.kind in "ui" or np.all(np.mod(finite, 1) == 0)):
        is_unit = low >= 0 and high <= 1
        return _make_range(*((0.0, 1.0) if is_unit else (low, high)), depth)
    if values.dtype.kind == "f" and high <= 1:
        return _make_range(0.0, 1.0, depth)
    usable_bits = 8 * values.dtype.itemsize - int(values.dtype.kind == "i")
    bits = max(min(_MIN_BITS, usable_bits), math.ceil(math.log2(high + 1)))
    return _make_range(0.0, float(2**bits - 1), depth)


def sampled(read: Callable[[int, int, int, int], Values], width_px: int, height_px: int) -> Values:
    """Sample values for ``range_of`` of a picture that is read by (x, y, width, height)."""
    if max(width_px, height_px) <= _SAMPLE_PX:
        return read(0, 0, width_px, height_px)
    side_x, side_y = min(_PLACE_PX, width_px), min(_PLACE_PX, height_px)
    places = [
        read(int(x), int(y), side_x, side_y)
        for y in np.linspace(0, height_px - side_y, _PLACES)
        for x in np.linspace(0, width_px - side_x, _PLACES)
    ]
    return np.stack(places)


def shown(values: Values, display_range: DisplayRange, *, has_alpha: bool = False) -> ImageU8:
    """Convert stored values to a picture.

    Args:
        values: (H, W) or (H, W, C); of two or four channels the last may be opacity.
        has_alpha: the last channel is opacity, as a share of the type's range.
    Returns:
        (H, W, 3) uint8 RGB; transparent pixels are white, values that are no numbers black.
    """
    values = values[..., None] if values.ndim == 2 else values
    colors = values[..., :-1] if has_alpha else values
    colors = colors[..., : 3 if colors.shape[-1] >= 3 else 1]
    exact = np.dtype(np.float32 if values.dtype.itemsize <= _SHORT_BYTES else np.float64)
    scaled: npt.NDArray[np.floating[Any]] = colors.astype(exact) - display_range.low
    scaled *= _WHITE / (display_range.high - display_range.low)
    scaled = np.clip(np.nan_to_num(scaled, copy=False, nan=0.0), 0, _WHITE)
    if has_alpha:
        full = float(np.iinfo(values.dtype).max) if values.dtype.kind in "ui" else 1.0
        opacity = np.clip(values[..., -1:].astype(exact) / full, 0, 1)
        scaled = scaled * opacity + _WHITE * (1 - opacity)
    rgb = np.rint(scaled).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(rgb, (*rgb.shape[:2], 3)))


def _make_range(low: float, high: float, depth: StatedDepth) -> DisplayRange:
    if high <= low:
        high = low + 1.0
    return DisplayRange(high, low) if depth.is_inverted else DisplayRange(low, high)
