"""Real sections of one piece of tissue, laid onto each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

SMALLER = 32  # of the thumbnails that are laid onto each other: whole pixels of them are enough


def _thumbnail(path: Path) -> Any:
    with Image.open(path) as image:
        width, height = image.size
        image.draft("L", (width // 8, height // 8))
        small = image.convert("L").resize((width // SMALLER, height // SMALLER))
    return 255 - cv2.GaussianBlur(np.asarray(small), (0, 0), 3)


def laid_onto(one: Path, other: Path) -> Any:
    """(2, 3): from pixels of one section to those of the other, turned and moved."""
    first, second = _thumbnail(one), _thumbnail(other)
    second = cv2.resize(second, first.shape[::-1])
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 500, 1e-6)
    start = np.eye(2, 3, dtype=np.float32)
    how = cv2.MOTION_EUCLIDEAN
    likeness, result = cv2.findTransformECC(first, second, start, how, criteria)
    assert likeness > 0.95
    result[:, 2] *= SMALLER
    return result
