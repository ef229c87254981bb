"""Lines of text, drawn: fonts that come with Pillow, matplotlib and OpenCV, words as devices write.

The fonts to measure with are not among those to learn from.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import cache
from typing import Literal

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ml.extras import require_extra
from ml.types import ArrayF32

Use = Literal["learn", "measure"]
_FILES: dict[str, tuple[str, ...]] = {
    "learn": (
        "DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSansMono.ttf",
        "DejaVuSansMono-Bold.ttf", "STIXGeneral.ttf", "STIXGeneralBol.ttf", "cmtt10.ttf", "",
    ),
    "measure": (
        "DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSerif-Italic.ttf", "cmss10.ttf",
        "cmb10.ttf", "DejaVuSansMono-Oblique.ttf",
    ),
}  # fmt: skip
"""Of matplotlib; "" is Pillow's own."""
_STROKES: dict[str, tuple[int, ...]] = {
    "learn": (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_PLAIN, cv2.FONT_HERSHEY_DUPLEX),
    "measure": (cv2.FONT_HERSHEY_COMPLEX, cv2.FONT_HERSHEY_TRIPLEX),
}
_STROKE_SHARE = 0.35  # of all lines, drawn by OpenCV as many small programs do
_NAMES = (
    "Anna", "Meier", "John", "Smith", "Maria", "Garcia", "Wei", "Zhang", "Olga", "Ivanova", "Peter",
    "Lindqvist", "Ahmed", "Hassan", "Yuki", "Tanaka", "Jürgen", "Müller", "Zoë", "O'Neill", "Paulo",
)  # fmt: skip
_WORDS = (
    "Patient", "Name", "ID", "DOB", "Date", "Time", "Sex", "Age", "Hospital", "Dr.", "Ward", "Case",
    "Physician", "Comment", "Colon", "Caecum", "Zoom", "Gain", "mmHg", "l/min", "Flow", "Scope",
    "REC", "CH1", "LEFT", "um", "mm", "Block", "Slide", "H&E", "CD31", "Rev", "NBI", "Accession",
)  # fmt: skip


def line_of_text(rng: np.random.Generator) -> str:
    """What a device may write: names, numbers, dates, identifiers, words."""
    parts = [_PARTS[int(rng.integers(len(_PARTS)))](rng) for _ in range(int(rng.integers(1, 4)))]
    text = str(rng.choice([" ", "  ", ", ", ": ", "-", "_"])).join(parts)
    return (text.upper() if rng.random() < 0.25 else text)[:40]


def drawn(text: str, height_px: int, *, rng: np.random.Generator, use: Use) -> ArrayF32:
    """Ink of one line, 0 to 1, cut to the letters: (h, w) float32; capitals ``height_px`` high."""
    if rng.random() < _STROKE_SHARE:
        return _by_strokes(text, height_px, rng, _STROKES[use])
    files = _FILES[use]
    font = _font(files[int(rng.integers(len(files)))], height_px)
    left, top, right, bottom = font.getbbox(text)
    size = (max(1, int(right - left) + 2), max(1, int(bottom - top) + 2))
    picture = Image.new("L", size)
    ImageDraw.Draw(picture).text((1 - left, 1 - top), text, fill=255, font=font)
    return np.asarray(np.asarray(picture) / 255, np.float32)


def _by_strokes(
    text: str, height_px: int, rng: np.random.Generator, fonts: Sequence[int]
) -> ArrayF32:
    font = int(fonts[int(rng.integers(len(fonts)))])
    thickness = int(rng.integers(1, max(2, height_px // 7 + 1)))
    scale = cv2.getFontScaleFromHeight(font, height_px, thickness)
    ascii_text = text.encode("ascii", "ignore").decode()
    (width, high), below = cv2.getTextSize(ascii_text, font, scale, thickness)
    ink = np.zeros((high + below + 2 * thickness, width + 2 * thickness), np.uint8)
    at = (thickness, high + thickness)
    cv2.putText(ink, ascii_text, at, font, scale, 255, thickness, cv2.LINE_AA)
    return np.asarray(ink / 255, np.float32)


@cache
def _font(name: str, height_px: int) -> ImageFont.FreeTypeFont:
    """A font whose capitals are about that high."""
    size = max(4, round(height_px / 0.72))  # capitals are about 0.72 of a font's size
    if not name:
        font = ImageFont.load_default(size)
        assert isinstance(font, ImageFont.FreeTypeFont)  # noqa: S101 - Pillow with FreeType
        return font
    require_extra("matplotlib", extra="plots")
    from matplotlib import get_data_path

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}", size)


def _name(rng: np.random.Generator) -> str:
    return str(rng.choice(_NAMES))


def _word(rng: np.random.Generator) -> str:
    return str(rng.choice(_WORDS))


def _date(rng: np.random.Generator) -> str:
    year, month, day = (
        int(rng.integers(1930, 2030)),
        int(rng.integers(1, 13)),
        int(rng.integers(1, 29)),
    )
    kinds = (f"{day:02}/{month:02}/{year}", f"{year}-{month:02}-{day:02}", f"{day}.{month}.{year}")
    return kinds[int(rng.integers(3))]


def _time(rng: np.random.Generator) -> str:
    return f"{rng.integers(24):02}:{rng.integers(60):02}:{rng.integers(60):02}"


def _number(rng: np.random.Generator) -> str:
    return str(int(rng.integers(10, 10 ** int(rng.integers(2, 10)))))


def _letters(rng: np.random.Generator) -> str:
    signs = list(string.ascii_letters + string.digits)
    return "".join(rng.choice(signs, int(rng.integers(3, 12))))


_PARTS = (_name, _word, _date, _time, _number, _letters)
