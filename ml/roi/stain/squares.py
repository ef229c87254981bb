"""Squares of one size over the tissue of a slide, shuffled, so that any first few are spread."""

from __future__ import annotations

import math

import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides import SlideImage
from ml.roi.stain.fields import glass_colour, tissue_mask
from ml.roi.stain.outline import LEAST_SHARE, THUMBNAIL_PX
from ml.types import ArrayBool, ArrayF64

LEAST_TISSUE = 0.5  # of a square: with less, glass would be compared with glass
MOST_LOOKED_AT = 200_000  # squares of a whole slide whose tissue is measured: 0.1 s
SEED = 0  # any: the same squares each time


def tissue_squares(slide: SlideImage, side_px: float, *, most: int) -> ArrayF64:
    """Squares that hold tissue; they overlap by half if that gives no more than ``most``.

    Args:
        slide: open slide or still.
        side_px: in level-0 pixels; cut to the shorter side of the slide.
        most: squares returned; where the tissue holds more, these are spread over it.
    Returns:
        (N, 4) float64: left, top, right, bottom in level-0 pixels, shuffled, the same for the same
        slide: the first n are spread over the tissue as well. N is 0 without tissue.
    Raises:
        BadInputError: the side is not above 0, or ``most`` is below 1.
    """
    if not side_px > 0 or most < 1:
        raise BadInputError(f"squares: expected a side above 0, got {side_px}, {most} of them")
    width, height = slide.info.width_px, slide.info.height_px
    side = min(float(side_px), float(width), float(height))
    thumbnail = slide.thumbnail(THUMBNAIL_PX)
    mask = tissue_mask(thumbnail, glass_colour(thumbnail))
    if mask.mean() < LEAST_SHARE:
        return np.empty((0, 4), np.float64)
    found = _with_tissue(mask, (width, height), side, side / 2)
    if len(found) > most:
        found = _with_tissue(mask, (width, height), side, side)
    order = np.random.default_rng(SEED).permutation(len(found))[:most]
    return found[order]


def _with_tissue(mask: ArrayBool, size_l0: tuple[int, int], side: float, step: float) -> ArrayF64:
    """Those of a grid of squares that hold tissue enough."""
    width, height = size_l0
    step = max(step, math.sqrt(width * height / MOST_LOOKED_AT))
    left, top = (_starts(length, side, step) for length in (width, height))
    sums = np.pad(mask.astype(np.float64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    rows, columns = mask.shape
    x0, x1 = _cells(left, side, columns / width, columns)
    y0, y1 = _cells(top, side, rows / height, rows)
    held = sums[y1][:, x1] - sums[y0][:, x1] - sums[y1][:, x0] + sums[y0][:, x0]
    share = held / ((y1 - y0)[:, None] * (x1 - x0)[None, :])
    at_y, at_x = np.nonzero(share >= LEAST_TISSUE)
    corner = np.stack([left[at_x], top[at_y]], axis=1)
    return np.concatenate([corner, corner + side], axis=1)


def _starts(length: int, side: float, step: float) -> ArrayF64:
    """Where squares begin along one axis: evenly, from edge to edge."""
    count = max(1, math.ceil((length - side) / step) + 1)
    return np.linspace(0, length - side, count)


def _cells(
    start: ArrayF64, side: float, per_px: float, count: int
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], ...]:
    """The cells of the mask from and to which squares reach, one at least."""
    first = np.clip(np.floor(start * per_px + 0.5), 0, count - 1).astype(np.int64)
    last = np.clip(np.floor((start + side) * per_px + 0.5), 1, count).astype(np.int64)
    return first, np.maximum(last, first + 1)
