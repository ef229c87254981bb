"""Lines of text in a picture, read by RapidOCR: PP-OCR models on ONNX Runtime, from its wheel.

RapidOCR is imported when the first picture is read: ONNX Runtime starts a thread when it is
imported, and a process with several threads cannot confine itself.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ml.errors import LimitExceededError
from ml.imaging.resize import reduce_to
from ml.types import ImageU8

LONG_SIDE_PX = 2_000
"""A picture is read at no more than this; text of 6 px is read, of 8 px mostly without mistakes."""
MAX_LINES = 300
"""Lines read in one picture: a hostile one may hold a thousand."""
MIN_SCORE = 0.5
"""Smallest mean probability of a line's characters."""
_MIN_SIDE_SHARE = 1 / 3
"""Smallest ratio of the sides. The detector enlarges the shorter one to 736 px: without a margin, a
picture of 2000 x 2 px would become one of 700,000 px."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text.

    Attributes:
        text: as read, in compatibility form (full-width characters as ASCII).
        score: mean probability of its characters, 0 to 1.
        x, y, width, height: upright box around it, as shares of the picture's sides.
    """

    text: str
    score: float
    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: TextLine) -> float:
        """Common area of two lines as a share of the smaller box."""
        width = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        height = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        smaller = min(self.width * self.height, other.width * other.height)
        return max(width, 0.0) * max(height, 0.0) / max(smaller, 1e-12)


def read_text(rgb: ImageU8) -> list[TextLine]:
    """Lines of text in a picture, from top to bottom.

    Args:
        rgb: (H, W, 3) uint8.
    Raises:
        LimitExceededError: ONNX Runtime ended, in a confined child for lack of memory.
    """
    from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

    picture = _with_margins(reduce_to(rgb, LONG_SIDE_PX))
    try:
        result = _reader()(np.ascontiguousarray(picture[..., ::-1]))
    except ONNXRuntimeError as error:
        raise LimitExceededError("reading the text in its picture needs too much memory") from error
    if result.boxes is None or result.txts is None:
        return []
    height, width = rgb.shape[:2]
    px_of_picture = max(rgb.shape[:2]) / min(max(rgb.shape[:2]), LONG_SIDE_PX)
    lines = []
    for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
        xy = np.asarray(corners, np.float64) * px_of_picture / (width, height)
        (x0, y0), (x1, y1) = np.clip(xy.min(axis=0), 0, 1), np.clip(xy.max(axis=0), 0, 1)
        plain = unicodedata.normalize("NFKC", str(text)).strip()
        if plain and x1 > x0 and y1 > y0:
            box = (float(x0), float(y0), float(x1 - x0), float(y1 - y0))
            lines.append(TextLine(plain, float(score), *box))
    return lines


@cache
def _reader() -> Any:
    """RapidOCR on one thread; its models are loaded with the first picture."""
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.max_side_len": LONG_SIDE_PX,
            "Global.text_score": MIN_SCORE,
            "Det.max_candidates": MAX_LINES,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _with_margins(rgb: ImageU8) -> ImageU8:
    """Pad a picture with black to the right or below until no side is much shorter."""
    height, width = rgb.shape[:2]
    min_side = round(max(height, width) * _MIN_SIDE_SHARE)
    margins = ((0, max(0, min_side - height)), (0, max(0, min_side - width)), (0, 0))
    return np.pad(rgb, margins) if any(after for _, after in margins) else rgb
