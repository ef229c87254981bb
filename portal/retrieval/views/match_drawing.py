"""What two regions have in common, drawn over their pictures: one SVG with both side by side."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ml.types import ArrayF64
from portal.retrieval.selectors import MatchFound
from portal.retrieval.selectors.explanations import Box, Point
from portal.retrieval.thumbnails import CLOSE, Window

GAP_PX = 24  # between the two pictures
_CELL_PX = 16  # of the heat: a patch is drawn by a hundred cells, and its edge is soft
_POINTS_MOST = 40  # key points that are joined by lines: more hide what lies below
_FOR, _AGAINST = (255, 176, 0), (20, 24, 31)  # amber, clear of stained tissue; ink
_DENSEST = 140  # of 255: below the heat the tissue is still seen
_BADGE_PX = 18  # from the middle of a number's disc to its rim


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two pictures.

    Attributes:
        address: of a ``CLOSE`` picture of ``window``.
        patches, adds, points: of this region, as ``MatchFound`` has them.
    """

    address: str
    window: Window
    patches: Sequence[Box]
    adds: Sequence[float]
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """A square around a matched patch; ``x`` and ``y`` of its upper left corner.

    Patches may be larger than what the picture shows: the square is cut by it, and its number and
    the end of its line stay within.

    Attributes:
        left: of its picture.
    """

    x: float
    y: float
    side: float
    left: int

    @property
    def middle(self) -> Point:
        """Where its line begins."""
        return self._within(self.x + self.side / 2, self.y + self.side / 2, 0)

    @property
    def badge(self) -> Point:
        """Where its number stands."""
        return self._within(self.x, self.y, _BADGE_PX)

    def _within(self, x: float, y: float, margin: int) -> Point:
        left, right = self.left + margin, self.left + CLOSE.width_px - margin
        return min(max(x, left), right), min(max(y, margin), CLOSE.height_px - margin)


@dataclass(frozen=True, slots=True)
class Line:
    """Two places that match, one in each picture.

    Attributes:
        number: as it is written; 0 for key points. times: of what an average pair adds.
    """

    number: int
    a: Mark
    b: Mark
    times: float = 0.0

    @property
    def marks(self) -> tuple[Mark, Mark]:
        """Both."""
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that the template draws, in units of the SVG.

    Attributes:
        heat: of each picture as a ``data:`` address; none for key points.
    """

    width: int
    height: int
    right: int
    addresses: tuple[str, str]
    heat: tuple[str, ...]
    lines: tuple[Line, ...]


def drawn(found: MatchFound, a: Pane, b: Pane) -> Drawing:
    """The pictures of both regions with what they have in common."""
    right = CLOSE.width_px + GAP_PX
    strongest = max((abs(add) * len(one.adds) for one in (a, b) for add in one.adds), default=0.0)
    heat = () if found.is_of_points else tuple(_heat(one, strongest) for one in (a, b))
    return Drawing(
        width=right + CLOSE.width_px,
        height=CLOSE.height_px,
        right=right,
        addresses=(a.address, b.address),
        heat=heat,
        lines=_of_points(a, b, right) if found.is_of_points else _of_pairs(found, a, b, right),
    )


def _of_pairs(found: MatchFound, a: Pane, b: Pane, right: int) -> tuple[Line, ...]:
    average = max((found.similarity or 0.0) / (len(a.patches) * len(b.patches)), 1e-12)
    return tuple(
        Line(
            number,
            _mark(a.patches[pair.a], a.window, 0),
            _mark(b.patches[pair.b], b.window, right),
            pair.adds / average,
        )
        for number, pair in enumerate(found.pairs, start=1)
    )


def _of_points(a: Pane, b: Pane, right: int) -> tuple[Line, ...]:
    both = list(zip(a.points, b.points, strict=True))[:_POINTS_MOST]
    return tuple(
        Line(0, _mark((*x, *x), a.window, 0), _mark((*y, *y), b.window, right)) for x, y in both
    )


def _mark(box: Box, window: Window, offset: int) -> Mark:
    left, top, width, _ = window
    scale = CLOSE.width_px / width
    x, y = (box[0] - left) * scale + offset, (box[1] - top) * scale
    return Mark(round(x, 1), round(y, 1), round((box[2] - box[0]) * scale, 1), offset)


def _heat(pane: Pane, strongest: float) -> str:
    """The mean of what the patches over a place add: amber for the match, dark against it."""
    adds = _averaged(pane) / max(strongest, 1e-12)
    pixels = np.zeros((*adds.shape, 4), np.uint8)
    pixels[..., :3] = np.where(adds[..., None] >= 0, _FOR, _AGAINST)
    pixels[..., 3] = np.clip(np.abs(adds) * _DENSEST, 0, _DENSEST)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _averaged(pane: Pane) -> ArrayF64:
    """(rows, columns) of cells: what patches add, times their number, to compare both regions."""
    rows, columns = CLOSE.height_px // _CELL_PX, CLOSE.width_px // _CELL_PX
    total, count = np.zeros((rows, columns)), np.zeros((rows, columns))
    for box, add in zip(pane.patches, pane.adds, strict=True):
        mark = _mark(box, pane.window, 0)
        y = slice(*(_cell(end, rows) for end in (mark.y, mark.y + mark.side)))
        x = slice(*(_cell(end, columns) for end in (mark.x, mark.x + mark.side)))
        total[y, x] += add * len(pane.adds)
        count[y, x] += 1
    return np.divide(total, count, out=total, where=count > 0)


def _cell(at_px: float, cells: int) -> int:
    return min(max(round(at_px / _CELL_PX), 0), cells)
