"""Squares of equal size over the tissue of a slide, in random order."""

from __future__ import annotations

import math

import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides.slide import SlideImage
from ml.imaging.tissue.glass import glass_colour, tissue_mask
from ml.roi.stain.outline import MIN_SHARE, THUMBNAIL_PX
from ml.types import ArrayBool, ArrayF64

MIN_TISSUE = 0.5  # share of a square, so that glass is not compared with glass
MAX_INSPECTED = 200_000  # squares of a slide whose tissue is measured, in 0.1 s
SEED = 0


def tissue_squares(slide: SlideImage, side_px: float, *, max_count: int) -> ArrayF64:
    """Squares with tissue; they overlap by half if these are at most ``max_count``.

    Args:
        slide: Open slide or still.
        side_px: Side in level-0 pixels, limited to the shorter side of the slide.
        max_count: Largest number of squares, a random sample if there are more.
    Returns:
        (N, 4) float64, left, top, right, bottom in level-0 pixels, in a deterministic random order;
        N is 0 without tissue.
    Raises:
        BadInputError: The side is not above 0, or ``max_count`` is below 1.
    """
    if not side_px > 0 or max_count < 1:
        raise BadInputError(f"squares: expected a side above 0, got {side_px}, {max_count} of them")
    width, height = slide.info.width_px, slide.info.height_px
    side = min(float(side_px), float(width), float(height))
    thumbnail = slide.thumbnail(THUMBNAIL_PX)
    mask = tissue_mask(thumbnail, glass_colour(thumbnail))
    if mask.mean() < MIN_SHARE:
        return np.empty((0, 4), np.float64)
    squares = _with_tissue(mask, (width, height), side, side / 2)
    if len(squares) > max_count:
        squares = _with_tissue(mask, (width, height), side, side)
    order = np.random.default_rng(SEED).permutation(len(squares))[:max_count]
    return squares[order]


def _with_tissue(mask: ArrayBool, size_l0: tuple[int, int], side: float, step: float) -> ArrayF64:
    """Squares of a grid with enough tissue."""
    width, height = size_l0
    step = max(step, math.sqrt(width * height / MAX_INSPECTED))
    left, top = (_starts(length, side, step) for length in (width, height))
    sums = np.pad(mask.astype(np.float64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    rows, columns = mask.shape
    x0, x1 = _cells(left, side, columns / width, columns)
    y0, y1 = _cells(top, side, rows / height, rows)
    tissue_px = sums[y1][:, x1] - sums[y0][:, x1] - sums[y1][:, x0] + sums[y0][:, x0]
    share = tissue_px / ((y1 - y0)[:, None] * (x1 - x0)[None, :])
    at_y, at_x = np.nonzero(share >= MIN_TISSUE)
    corner = np.stack([left[at_x], top[at_y]], axis=1)
    return np.concatenate([corner, corner + side], axis=1)


def _starts(length: int, side: float, step: float) -> ArrayF64:
    """Evenly spaced start positions of squares along an axis, from edge to edge."""
    count = max(1, math.ceil((length - side) / step) + 1)
    return np.linspace(0, length - side, count)


def _cells(
    start: ArrayF64, side: float, per_px: float, count: int
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], ...]:
    """First and last cells of the mask under squares, at least one each."""
    first = np.clip(np.floor(start * per_px + 0.5), 0, count - 1).astype(np.int64)
    last = np.clip(np.floor((start + side) * per_px + 0.5), 1, count).astype(np.int64)
    return first, np.maximum(last, first + 1)
