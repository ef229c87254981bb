"""Drawn text: overlays of devices and labels of slides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ml.types import ArrayF32, ImageU8

SIZE_PX = (640, 480)
"""Width and height of a picture."""
KNOWN = ("Lindqvist Tanaka", "P-4471")
"""Known words of the case to which the pictures belong."""
_STROKE_FONTS = (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_COMPLEX)
_STROKE_SHARE = 0.5  # of lines drawn by OpenCV
_OTHER = (
    "Patient pressure 14 mmHg", "Actual gas flow 2.1 l/min", "KARL STORZ", "CHROMA", "Zoom 1.2x",
    "Gain 3 dB", "H&E", "NBI on", "00:05:02", "REC", "20 um", "1920x1080", "ISO 400", "Block A1",
    "CVP:1", "CD31 1:200", "Light 75 %", "Level 3", "Filter: Red", "Scale 50 um",
)  # fmt: skip
_JPEG_QUALITY = 80  # as cameras write


@dataclass(frozen=True, slots=True)
class Writing:
    """Style of a line drawn over a picture.

    Attributes:
        height_px: of capitals.
        contrast: least and largest difference between ink and ground, grey levels.
        turns_deg: least and largest rotation, counter-clockwise.
    """

    height_px: int
    contrast: tuple[float, float] = (90, 160)
    turns_deg: tuple[float, float] = (0, 0)


Lines: TypeAlias = tuple[str, ...]


def identifying_line(number: int, rng: np.random.Generator) -> str:
    """A date, a number or a name as devices write them, in turn."""
    year, month, day = (int(rng.integers(*span)) for span in ((1940, 2027), (1, 13), (1, 29)))
    digits = int(rng.integers(10**6, 10**7))
    kinds = (
        f"{day:02}/{month:02}/{year}",
        f"Name: {rng.choice(['Anna Meier', 'John Smith', 'Wei Zhang', 'Olga Ivanova'])}",
        f"{year}-{month:02}-{day:02} {rng.integers(24):02}:{rng.integers(60):02}",
        f"MRN {digits}",
        f"DOB {day}.{month}.{year}",
        f"S{year % 100:02}-{digits % 100_000:05}",
        f"{rng.choice(['Lindqvist', 'TANAKA'])} {rng.choice(['A', 'Dr', 'room 3'])}",
        f"Patient: {rng.choice(['Garcia', 'Hassan', 'Peters'])}",
    )
    return kinds[number % len(kinds)]


def other_line(number: int, rng: np.random.Generator) -> str:
    """A maker's name, a setting, a marker or a timer."""
    return _OTHER[number % len(_OTHER)]


def label_lines(line: str, rng: np.random.Generator) -> Lines:
    """Lines of a slide's label, one of them given."""
    other_lines = rng.choice(
        ["H&E", "Block A1", "Level 3", "CD31 1:200", "Lab 4"], 2, replace=False
    )
    lines = [line, *map(str, other_lines)]
    rng.shuffle(lines)
    return tuple(lines)


def overlay(ground: ImageU8, line: str, style: Writing, rng: np.random.Generator) -> ImageU8:
    """Draw a line over a part of a picture, and compress it as a camera would.

    Args:
        ground: (H, W, 3).
    """
    image = _part(ground, rng)
    ink = _rotate(_ink(line, style.height_px, rng), float(rng.uniform(*style.turns_deg)))
    height, width = ink.shape
    room = (image.shape[1] - width, image.shape[0] - height)
    x, y = (int(rng.integers(0, max(1, max_offset))) for max_offset in room)
    place = image[y : y + height, x : x + width]
    ink = ink[: place.shape[0], : place.shape[1], None]
    under = float(place.mean())
    level = under + float(rng.uniform(*style.contrast)) * (1 if under < 128 else -1)
    place[:] = np.clip(place * (1 - ink) + level * ink, 0, 255)
    return _jpeg_round_trip(image)


def label(lines: Lines, rng: np.random.Generator) -> ImageU8:
    """Draw a slide's label, turned by a multiple of 90 degrees, next to glass."""
    paper = np.full((300, 300, 3), rng.uniform(215, 255, 3), np.uint8)
    for number, line in enumerate(lines):
        ink = _ink(line, int(rng.integers(13, 22)), rng)[:, :280]
        y = 40 + 70 * number
        place = paper[y : y + ink.shape[0], 12 : 12 + ink.shape[1]]
        place[:] = place * (1 - ink[..., None]) + 30 * ink[..., None]
    paper = np.rot90(paper, int(rng.integers(4)))
    image = np.full((SIZE_PX[1], SIZE_PX[0], 3), 235, np.uint8)
    image[90:390, 40:340] = paper
    return _jpeg_round_trip(image)


def _part(ground: ImageU8, rng: np.random.Generator) -> ImageU8:
    width, height = SIZE_PX
    scale = max(1.0, width / ground.shape[1], height / ground.shape[0])
    large = cv2.resize(ground, None, fx=scale, fy=scale) if scale > 1 else ground
    x = int(rng.integers(0, large.shape[1] - width + 1))
    y = int(rng.integers(0, large.shape[0] - height + 1))
    return np.array(large[y : y + height, x : x + width], np.uint8)


def _ink(line: str, height_px: int, rng: np.random.Generator) -> ArrayF32:
    """(h, w) ink of one line, 0 to 1, cut to the letters; capitals are ``height_px`` high."""
    if rng.random() < _STROKE_SHARE:
        return _stroke_ink(line, height_px, int(rng.choice(_STROKE_FONTS)))
    font = ImageFont.load_default(max(4, round(height_px / 0.72)))  # capitals are 0.72 of the size
    left, top, right, bottom = font.getbbox(line)
    picture = Image.new("L", (int(right - left) + 2, int(bottom - top) + 2))
    ImageDraw.Draw(picture).text((1 - left, 1 - top), line, fill=255, font=font)
    return np.asarray(np.asarray(picture) / 255, np.float32)


def _stroke_ink(line: str, height_px: int, font: int) -> ArrayF32:
    thickness = max(1, height_px // 9)
    scale = cv2.getFontScaleFromHeight(font, height_px, thickness)
    (width, high), below = cv2.getTextSize(line, font, scale, thickness)
    ink = np.zeros((high + below + 2 * thickness, width + 2 * thickness), np.uint8)
    at = (thickness, high + thickness)
    cv2.putText(ink, line, at, font, scale, 255, thickness, cv2.LINE_AA)
    return np.asarray(ink / 255, np.float32)


def _rotate(ink: ArrayF32, deg: float) -> ArrayF32:
    if not deg:
        return ink
    height, width = ink.shape
    side = int(np.hypot(width, height)) + 2
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), deg, 1.0)
    matrix[:, 2] += (side - width) / 2, (side - height) / 2
    turned = cv2.warpAffine(ink, matrix, (side, side))
    rows, columns = (np.flatnonzero(turned.max(axis=axis) > 0.1) for axis in (1, 0))
    return np.asarray(turned[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], np.float32)


def _jpeg_round_trip(image: ImageU8) -> ImageU8:
    coded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
    return np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)
