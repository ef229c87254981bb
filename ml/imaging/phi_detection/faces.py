"""Detection of faces by OpenCV's cascades; see NOTICE for their licence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.resize import reduce_to
from ml.types import ImageU8

LONG_SIDE_PX = 640
"""A face of a sixteenth of it is as large as the cascades need."""
_FIRST_CASCADE = "haarcascade_frontalface_alt2.xml"
_SECOND_CASCADE = "haarcascade_frontalface_default.xml"
_MIN_SHARE = 1 / 16  # of the picture's longer side
_MIN_PX = 30  # the cascades were trained at 20 and 24 px
_NEIGHBOURS = 8  # overlapping detections; with 6, one of 142 laparoscopy stills had a "face"
_STEP = 1.1  # scale factor between searched sizes


@dataclass(frozen=True, slots=True)
class FaceBox:
    """A face, as shares of the picture's sides."""

    x: float
    y: float
    width: float
    height: float


def face_boxes(rgb: ImageU8) -> list[FaceBox]:
    """Upright faces in (H, W, 3) uint8, seen from the front, that two cascades agree on."""
    small = reduce_to(rgb, LONG_SIDE_PX)
    size = small.shape[1], small.shape[0]
    grey = np.asarray(cv2.equalizeHist(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)), np.uint8)
    min_px = max(_MIN_PX, round(max(size) * _MIN_SHARE))
    if min(size) < min_px:
        return []
    first = _detect(_FIRST_CASCADE, grey, min_px)
    second = _detect(_SECOND_CASCADE, grey, min_px) if first else []
    return [
        FaceBox(x / size[0], y / size[1], wide / size[0], high / size[1])
        for x, y, wide, high in first
        if any(_is_same_face((x, y, wide, high), other) for other in second)
    ]


def _detect(name: str, grey: ImageU8, min_px: int) -> list[tuple[int, int, int, int]]:
    boxes = _cascade(name).detectMultiScale(
        grey, scaleFactor=_STEP, minNeighbors=_NEIGHBOURS, minSize=(min_px, min_px)
    )
    return [
        (int(x), int(y), int(wide), int(high)) for x, y, wide, high in np.reshape(boxes, (-1, 4))
    ]


def _is_same_face(first: tuple[int, int, int, int], second: tuple[int, int, int, int]) -> bool:
    """Return whether two boxes are close and of similar size, within a factor of two."""
    middles = [(box[0] + box[2] / 2, box[1] + box[3] / 2) for box in (first, second)]
    distance = max(abs(middles[0][0] - middles[1][0]), abs(middles[0][1] - middles[1][1]))
    smaller, larger = sorted((first[2], second[2]))
    return distance < smaller / 2 and larger <= 2 * smaller


@cache
def _cascade(name: str) -> cv2.CascadeClassifier:
    return cv2.CascadeClassifier(str(Path(cv2.__file__).parent / "data" / name))
