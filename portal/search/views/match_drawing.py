"""SVG of two regions side by side with their matching patches."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ml.types import ArrayF64
from portal.search.selectors.explanations import Box, MatchExplanation, Point
from portal.search.thumbnails.regions import CLOSE, Window

GAP_PX = 24  # between the two pictures
_CELL_PX = 16  # of the heat map; a patch covers a hundred cells
_MAX_POINTS = 40  # lines between key points; more would hide the tissue
_FOR, _AGAINST = (255, 176, 0), (20, 24, 31)  # amber, distinct from stained tissue; ink
_DENSEST = 140  # opacity out of 255, so that tissue stays visible
_BADGE_PX = 18  # radius of a number's disc


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two pictures.

    Attributes:
        address: URL of a ``CLOSE`` picture of ``window``.
        patches, contributions, points: Of this region, as in ``MatchExplanation``.
    """

    address: str
    window: Window
    patches: Sequence[Box]
    contributions: Sequence[float]
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """Square around a matched patch; ``x`` and ``y`` are its upper left corner.

    A patch may be larger than the picture: the square is clipped, and its number and line stay
    within.

    Attributes:
        left: Left edge of its picture.
    """

    x: float
    y: float
    side: float
    left: int

    @property
    def middle(self) -> Point:
        """Start point of its line."""
        return self._clamp_point(self.x + self.side / 2, self.y + self.side / 2, 0)

    @property
    def badge(self) -> Point:
        """Position of its number."""
        return self._clamp_point(self.x, self.y, _BADGE_PX)

    def _clamp_point(self, x: float, y: float, margin: int) -> Point:
        left, right = self.left + margin, self.left + CLOSE.width_px - margin
        return min(max(x, left), right), min(max(y, margin), CLOSE.height_px - margin)


@dataclass(frozen=True, slots=True)
class Line:
    """Two matching positions, one in each picture.

    Attributes:
        number: Number shown; 0 for key points.
        times: Contribution relative to the average pair.
    """

    number: int
    a: Mark
    b: Mark
    times: float = 0.0

    @property
    def marks(self) -> tuple[Mark, Mark]:
        """Points of both ends."""
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Drawing:
    """Data of the SVG template, in units of the SVG.

    Attributes:
        heat: ``data:`` address for each picture; none for key points.
    """

    width: int
    height: int
    right: int
    addresses: tuple[str, str]
    heat: tuple[str, ...]
    lines: tuple[Line, ...]


def drawn(explanation: MatchExplanation, a: Pane, b: Pane) -> Drawing:
    """Drawing of two regions and their matches."""
    right = CLOSE.width_px + GAP_PX
    strongest = max(
        (abs(add) * len(pane.contributions) for pane in (a, b) for add in pane.contributions),
        default=0.0,
    )
    heat = () if explanation.is_of_points else tuple(_heat(pane, strongest) for pane in (a, b))
    return Drawing(
        width=right + CLOSE.width_px,
        height=CLOSE.height_px,
        right=right,
        addresses=(a.address, b.address),
        heat=heat,
        lines=_point_lines(a, b, right)
        if explanation.is_of_points
        else _pair_lines(explanation, a, b, right),
    )


def _pair_lines(explanation: MatchExplanation, a: Pane, b: Pane, right: int) -> tuple[Line, ...]:
    average = max((explanation.similarity or 0.0) / (len(a.patches) * len(b.patches)), 1e-12)
    return tuple(
        Line(
            number,
            _mark(a.patches[pair.a], a.window, 0),
            _mark(b.patches[pair.b], b.window, right),
            pair.contribution / average,
        )
        for number, pair in enumerate(explanation.pairs, start=1)
    )


def _point_lines(a: Pane, b: Pane, right: int) -> tuple[Line, ...]:
    both = list(zip(a.points, b.points, strict=True))[:_MAX_POINTS]
    return tuple(
        Line(0, _mark((*x, *x), a.window, 0), _mark((*y, *y), b.window, right)) for x, y in both
    )


def _mark(box: Box, window: Window, offset: int) -> Mark:
    left, top, width, _ = window
    scale = CLOSE.width_px / width
    x, y = (box[0] - left) * scale + offset, (box[1] - top) * scale
    return Mark(round(x, 1), round(y, 1), round((box[2] - box[0]) * scale, 1), offset)


def _heat(pane: Pane, strongest: float) -> str:
    """Mean contribution of the patches at a position: amber for the match, dark against it."""
    contributions = _mean_contributions(pane) / max(strongest, 1e-12)
    pixels = np.zeros((*contributions.shape, 4), np.uint8)
    pixels[..., :3] = np.where(contributions[..., None] >= 0, _FOR, _AGAINST)
    pixels[..., 3] = np.clip(np.abs(contributions) * _DENSEST, 0, _DENSEST)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _mean_contributions(pane: Pane) -> ArrayF64:
    """Contributions times the number of patches, (rows, columns)."""
    rows, columns = CLOSE.height_px // _CELL_PX, CLOSE.width_px // _CELL_PX
    total, count = np.zeros((rows, columns)), np.zeros((rows, columns))
    for box, add in zip(pane.patches, pane.contributions, strict=True):
        mark = _mark(box, pane.window, 0)
        y = slice(*(_cell(end, rows) for end in (mark.y, mark.y + mark.side)))
        x = slice(*(_cell(end, columns) for end in (mark.x, mark.x + mark.side)))
        total[y, x] += add * len(pane.contributions)
        count[y, x] += 1
    return np.divide(total, count, out=total, where=count > 0)


def _cell(at_px: float, cells: int) -> int:
    return min(max(round(at_px / _CELL_PX), 0), cells)
