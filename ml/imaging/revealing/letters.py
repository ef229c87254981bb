"""Boxes of text in a picture, and of text that stands still over the frames of a video."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ml.imaging.revealing.network import LetterNetwork, letter_network
from ml.types import ArrayF32, ImageU8

LEAST_SIDE_PX = 48
"""A picture is halved, which finds letters twice as high, while its sides are at least this."""
MOST_HALVINGS = 4  # 2560 px: capitals from 7 to 450 px
_LEAST_CELLS = 6  # of a line's length: 24 px, three narrow letters of the least height
_LEAST_ASPECT = 1.5  # of a line's length to its height: "ID:" in capitals has about two
_LEAST_FILL = 0.45  # of a box that its line covers: one that slants covers half
_SHORT, _SHORT_COUNTS = 2.2, 0.9
"""A line shorter than that many heights counts less: rows of three or four glints are as short."""
SURE = 0.88
"""Score from which a line counts: no development image that was learned from, and has nothing
written on it, reaches it; rows of glints on wet tissue come close."""
SURE_ONCE = 0.92
"""The same for a line that only single frames of a video show: there are many of them."""


@dataclass(frozen=True, slots=True)
class TextBox:
    """A line of text.

    Attributes:
        x, y, width, height: as shares of the picture's sides.
        score: mean probability over it, less where it is short.
    """

    x: float
    y: float
    width: float
    height: float
    score: float

    def overlap(self, other: TextBox) -> float:
        """The common area as a share of the smaller one."""
        wide = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        high = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        smaller = min(self.width * self.height, other.width * other.height)
        return max(wide, 0.0) * max(high, 0.0) / max(smaller, 1e-12)


def text_boxes(
    rgb: ImageU8, *, sure: float = SURE, network: LetterNetwork | None = None
) -> list[TextBox]:
    """Lines of text in (H, W, 3) uint8, the surest first; capitals from 7 px."""
    return boxes_of(text_heat(rgb, network), sure=sure)


def text_heat(rgb: ImageU8, network: LetterNetwork | None = None) -> list[ArrayF32]:
    """The network's log odds, (h, w) each: for the picture, for it at half size, and so on."""
    asked = network or letter_network()
    return [asked.logits(picture) for picture in _halved(rgb)]


def boxes_of(heat: Sequence[ArrayF32], *, sure: float) -> list[TextBox]:
    """Boxes in the answers of ``text_heat``; of lines that lie over each other the surest."""
    found = [box for level in heat for box in _lines(level) if box.score >= sure]
    found.sort(key=lambda box: (-box.score, box.y, box.x))
    kept: list[TextBox] = []
    for box in found:
        if all(box.overlap(other) < 0.3 for other in kept):
            kept.append(box)
    return kept


def standing_heat(heats: Sequence[Sequence[ArrayF32]]) -> list[ArrayF32]:
    """The mean answer over frames: what stands still stays, what moves goes."""
    return [np.mean(np.stack(level), axis=0) for level in zip(*heats, strict=True)]


def _halved(rgb: ImageU8) -> Iterator[ImageU8]:
    picture = rgb
    for _ in range(MOST_HALVINGS + 1):
        yield picture
        size = (picture.shape[1] // 2, picture.shape[0] // 2)
        if min(size) < LEAST_SIDE_PX:
            return
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)


def _lines(logits: ArrayF32) -> Iterator[TextBox]:
    probability = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    rows, columns = probability.shape
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        (probability > 0.5).astype(np.uint8), connectivity=4
    )
    mass = np.bincount(labels.ravel(), probability.ravel(), count)
    for number in range(1, count):
        x, y, wide, high, area = (int(value) for value in stats[number])
        across, along = sorted((wide, high))
        if along < max(_LEAST_CELLS, _LEAST_ASPECT * across) or area < _LEAST_FILL * wide * high:
            continue
        score = float(mass[number] / area) * (_SHORT_COUNTS if along < _SHORT * across else 1.0)
        yield TextBox(x / columns, y / rows, wide / columns, high / rows, score)
