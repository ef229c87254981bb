"""Boxes of a picture in whole blocks of its coding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ml.errors import ShapeError
from ml.imaging.results import PictureBox

REDACTED_NAME, PREVIEW_NAME = "redacted", "preview.jpg"
"""Names of the files that the child writes."""
BLOCK_PX = 16
"""Side of a block that JPEG and H.264 code on its own: pixels of a full block stay constant."""


def pixel_boxes(
    boxes: Iterable[PictureBox], size_px: tuple[int, int]
) -> list[tuple[int, int, int, int]]:
    """(left, top, right, bottom) in pixels of each box, enlarged to full blocks of ``BLOCK_PX``.

    Args:
        boxes: Shares of the picture; parts outside it are cut off.
        size_px: (width, height) of the picture.
    Raises:
        ShapeError: A box has no area in the picture, or a number is not finite.
    """
    width, height = size_px
    bounds = []
    for box in boxes:
        numbers = (box.x, box.y, box.width, box.height)
        if not all(map(math.isfinite, numbers)):
            raise ShapeError("box", expected="finite numbers", actual=str(numbers))
        left, right = _span(box.x, box.width, width)
        top, bottom = _span(box.y, box.height, height)
        if right <= left or bottom <= top:
            raise ShapeError("box", expected="an area inside the picture", actual=str(numbers))
        bounds.append((left, top, right, bottom))
    return bounds


def boxes_from_json(boxes: Sequence[Sequence[float]]) -> tuple[PictureBox, ...]:
    """Boxes from their four numbers each."""
    return tuple(PictureBox(*map(float, numbers)) for numbers in boxes)


def _span(start: float, length: float, limit: int) -> tuple[int, int]:
    if length <= 0:
        return 0, 0
    low, high = max(0.0, start), min(1.0, start + length)
    first = math.floor(low * limit / BLOCK_PX) * BLOCK_PX
    last = math.ceil(high * limit / BLOCK_PX) * BLOCK_PX
    return first, min(last, limit)
