"""Pictures of matches: two images side by side, right lines green and wrong ones red."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.types import ArrayBool, ImageU8, Matches

RIGHT, WRONG = (60, 210, 90), (235, 50, 50)  # RGB: green and red
MAX_LINES = 200
"""Largest number of lines: more hide the images."""
MAX_WIDTH_PX = 1600
"""Largest width of a picture."""
GAP_PX = 8
"""Gap between the two images."""


def draw_pair(
    image_a: ImageU8,
    image_b: ImageU8,
    matches: Matches,
    is_right: ArrayBool,
    *,
    title: str,
    seed: int = 0,
) -> ImageU8:
    """Draw both images with a line per match, wrong ones on top, and their numbers.

    Args:
        is_right: (M,) bool.
        seed: Of the choice of lines if there are more than ``MAX_LINES``; the share of wrong ones
            stays the same.
    Returns:
        (H, W, 3) uint8 RGB.
    """
    height = max(len(image_a), len(image_b))
    offset = image_a.shape[1] + GAP_PX
    sheet = np.full((height, offset + image_b.shape[1], 3), 255, np.uint8)
    sheet[: len(image_a), : image_a.shape[1]] = image_a
    sheet[: len(image_b), offset:] = image_b
    scale = min(1.0, MAX_WIDTH_PX / sheet.shape[1])
    size = (round(sheet.shape[1] * scale), round(height * scale))
    sheet = np.ascontiguousarray(cv2.resize(sheet, size, interpolation=cv2.INTER_AREA))
    rows = np.random.default_rng(seed).permutation(len(matches))[:MAX_LINES]
    for row in sorted(rows, key=lambda i: not is_right[i]):
        start = matches.xy_a[row] * scale
        end = (matches.xy_b[row] + np.array([offset, 0], np.float32)) * scale
        colour = RIGHT if is_right[row] else WRONG
        from_px, to_px = ([round(float(v)) for v in xy] for xy in (start, end))
        cv2.line(sheet, from_px, to_px, colour, 1, cv2.LINE_AA)
        for point_px in (from_px, to_px):
            cv2.circle(sheet, point_px, 2, colour, -1, cv2.LINE_AA)
    return _add_title(sheet, f"{title}: {int(is_right.sum())} of {len(matches)} right")


def write_picture(path: Path, picture: ImageU8) -> None:
    """Write an RGB picture as JPEG or PNG by its suffix, and create its folder.

    Raises:
        BadInputError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    options = [cv2.IMWRITE_JPEG_QUALITY, 85]
    if not cv2.imwrite(str(path), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), options):
        raise BadInputError(f"{path.name}: expected a file that can be written")


def _add_title(sheet: ImageU8, text: str) -> ImageU8:
    bar = np.full((28, sheet.shape[1], 3), 255, np.uint8)
    cv2.putText(bar, text, (6, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (32, 36, 42), 1, cv2.LINE_AA)
    return np.asarray(np.vstack([bar, sheet]), np.uint8)
