"""Text in pictures: drawn in several sizes and contrasts, real, and absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.evaluation.revealing.grounds import clean_grounds, frames_of, written_by_devices
from ml.imaging.revealing.letters import TextBox, text_boxes
from ml.imaging.revealing.look import text_of_frames
from ml.training.letters.fonts import drawn, line_of_text
from ml.training.letters.scenes import write_line
from ml.types import ArrayF32, ImageU8, Progress

HEIGHTS_PX = (8, 12, 18, 28, 56)
"""Of capitals."""
CONTRASTS = {"low": (30, 60), "middle": (60, 120), "high": (120, 256)}
"""Grey levels between ink and the mean of the ground under it."""
_EACH = 40
"""Lines of each height and contrast: a rate of 0.9 is then known to about 0.1."""
_TRIES = 80
"""For each line: small or saturated pictures refuse some."""
_QUALITY = 80  # of JPEG, as cameras write
_HIT = 0.3  # of the smaller box


class FlaggedPictures(TypedDict):
    """How many pictures of a set were flagged."""

    pictures: int
    flagged: int


class DrawnLines(TypedDict):
    """Lines of one height and contrast, and how many of them were found."""

    height_px: int
    contrast: str
    lines: int
    found: int


class StandingLines(TypedDict):
    """Faint lines over a video: found in its first frame, and in all frames together."""

    video: str
    frames: int
    flagged_without: int
    lines: int
    found_in_first_frame: int
    found_standing: int


class TextScores(TypedDict):
    """All figures on text; pictures by their set."""

    without_text: dict[str, FlaggedPictures]
    real: dict[str, FlaggedPictures]
    drawn: list[DrawnLines]
    standing: list[StandingLines]


def measure_text(data: Path, *, seed: int, progress: Progress) -> TextScores:
    """All figures on text; the network learned from none of these pictures.

    Raises:
        BadInputError: no picture without text, a video without frames, or pictures too small.
    """
    grounds = list(clean_grounds(data))
    if not grounds:
        raise BadInputError(f"{data.name}: expected pictures without text, found none")
    false, clean = Counter[str](), Counter[str](name for name, _ in grounds)
    for done, (name, image) in enumerate(grounds):
        progress(done, len(grounds), "pictures without text")
        false[name] += bool(text_boxes(image))
    return {
        "without_text": {
            name: {"pictures": count, "flagged": false[name]} for name, count in clean.items()
        },
        "real": _real(written_by_devices(data)),
        "drawn": _drawn([image for _, image in grounds], seed, progress),
        "standing": _standing(data, seed),
    }


def _real(pictures: Iterable[tuple[str, ImageU8]]) -> dict[str, FlaggedPictures]:
    count, flagged = Counter[str](), Counter[str]()
    for name, image in pictures:
        count[name] += 1
        flagged[name] += bool(text_boxes(image))
    return {name: {"pictures": count[name], "flagged": flagged[name]} for name in count}


def _drawn(grounds: Sequence[ImageU8], seed: int, progress: Progress) -> list[DrawnLines]:
    rows: list[DrawnLines] = []
    for height in HEIGHTS_PX:
        for at, (name, contrast) in enumerate(CONTRASTS.items()):
            progress(HEIGHTS_PX.index(height) * 3 + at, 3 * len(HEIGHTS_PX), "drawn text")
            rng = np.random.default_rng((seed, height, at))
            hits = lines = tries = 0
            while lines < _EACH and tries < _TRIES * _EACH:
                tries += 1
                ground = grounds[int(rng.integers(len(grounds)))]
                made = with_line(ground, height, contrast, rng)
                if made is not None:
                    lines += 1
                    hits += any(box.overlap(made[1]) >= _HIT for box in text_boxes(made[0]))
            if not lines:
                raise BadInputError(
                    f"text: no line of {height} px fits into any of {len(grounds)} pictures"
                )
            rows.append({"height_px": height, "contrast": name, "lines": lines, "found": hits})
    return rows


def _standing(data: Path, seed: int) -> list[StandingLines]:
    """Low contrast over a video's frames: alone in the first frame, and in all together."""
    rows: list[StandingLines] = []
    for name in ("fetoscopy", "sinus"):
        frames = frames_of(data, name)
        if not frames:
            raise BadInputError(f"{name}: expected frames, found none")
        rng = np.random.default_rng((seed, len(frames)))
        lines: list[tuple[ArrayF32, tuple[int, int], ArrayF32]] = []
        once = together = tries = 0
        while len(lines) < _EACH // 4 and tries < _TRIES * (_EACH // 4):
            tries += 1
            line = chosen_line(frames[0], 12, CONTRASTS["low"], rng)
            if line is not None:
                lines.append(line)
        for ink, xy, color in lines:
            written = [_written(frame, ink, xy, color) for frame in frames]
            place = _box(frames[0], ink, xy)
            once += any(box.overlap(place) >= _HIT for box in text_boxes(written[0]))
            found = text_of_frames(written)
            together += any(at is None and box.overlap(place) >= _HIT for box, at in found)
        rows.append(
            {
                "video": name,
                "frames": len(frames),
                "flagged_without": len(text_of_frames(frames)),
                "lines": len(lines),
                "found_in_first_frame": once,
                "found_standing": together,
            }
        )
    return rows


def with_line(
    ground: ImageU8, height_px: int, contrast: tuple[int, int], rng: np.random.Generator
) -> tuple[ImageU8, TextBox] | None:
    """A picture with one line of text, and where; None if it does not fit."""
    line = chosen_line(ground, height_px, contrast, rng)
    return None if line is None else (_written(ground, *line), _box(ground, *line[:2]))


def chosen_line(
    ground: ImageU8, height_px: int, contrast: tuple[int, int], rng: np.random.Generator
) -> tuple[ArrayF32, tuple[int, int], ArrayF32] | None:
    """Ink, its upper left corner and its colour; half of the lines stand near a corner."""
    ink = drawn(line_of_text(rng), height_px, rng=rng, use="measure")
    room = (ground.shape[1] - ink.shape[1], ground.shape[0] - ink.shape[0])
    if min(room) < 0:
        return None
    share = rng.uniform(0, 1, 2)
    if rng.random() < 0.5:
        share = np.where(share < 0.5, share / 10, 1 - (1 - share) / 10)
    x, y = (int(room[axis] * share[axis]) for axis in (0, 1))
    under = float(ground[y : y + ink.shape[0], x : x + ink.shape[1]].mean())
    wanted = rng.uniform(*contrast) * rng.choice([-1, 1])
    level = under + wanted if 0 <= under + wanted <= 255 else under - wanted
    if not 0 <= level <= 255:
        return None
    tint = rng.normal(0, 12, 3)
    return ink, (x, y), np.clip(level + tint - tint.mean(), 0, 255).astype(np.float32)


def _written(ground: ImageU8, ink: ArrayF32, xy: tuple[int, int], color: ArrayF32) -> ImageU8:
    image = ground.copy()
    write_line(image, ink, xy, color)
    coded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    return np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)


def _box(ground: ImageU8, ink: ArrayF32, xy: tuple[int, int]) -> TextBox:
    high, wide = ground.shape[:2]
    return TextBox(xy[0] / wide, xy[1] / high, ink.shape[1] / wide, ink.shape[0] / high, 1.0)
