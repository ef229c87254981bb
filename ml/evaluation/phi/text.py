"""Shares of pictures that are held back for identifying text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias, TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.phi.stills import clean_stills, dated_stills, device_stills
from ml.evaluation.phi.writing import (
    KNOWN,
    Writing,
    identifying_line,
    label,
    label_lines,
    other_line,
    overlay,
)
from ml.imaging.phi_detection.detection import text_of_frames
from ml.imaging.phi_detection.identifiers import Vocabulary
from ml.types import ImageU8, Progress

LINES = 24
"""Default number of drawn pictures of each case, with identifying and with other text each."""
WRITINGS: dict[str, Writing] = {
    "overlay, 24 px": Writing(24),
    "overlay, 12 px": Writing(12),
    "tiny, 8 px": Writing(8),
    "low contrast, 16 px, 20 to 40 levels": Writing(16, contrast=(20, 40)),
    "turned by 5 to 20 degrees, 18 px": Writing(18, turns_deg=(5, 20)),
    "turned by 90 degrees, 18 px": Writing(18, turns_deg=(90, 90)),
}

HoldRule: TypeAlias = Callable[[ImageU8], bool]


class CaseScores(TypedDict):
    """Numbers of pictures of one case, and of those held back."""

    case: str
    identifying: int
    identifying_held: int
    other: int
    other_held: int


class TextScores(TypedDict):
    """Scores of text detection; ``cpu_s``: mean processor time of a picture, by case."""

    cases: list[CaseScores]
    cpu_s: dict[str, float]


def is_held(image: ImageU8) -> bool:
    """Return whether a picture contains identifying text."""
    findings = text_of_frames([image], Vocabulary(known=KNOWN))
    return any(kind != "other" for _, kind, _ in findings)


def measure_text(
    data: Path,
    *,
    seed: int,
    progress: Progress,
    lines: int = LINES,
    every: int = 1,
    holds: HoldRule = is_held,
) -> TextScores:
    """Score drawn and real pictures.

    Args:
        lines: number of drawn pictures of each case, with identifying and with other text each.
        every: step between real pictures without identifying text.
        holds: decision to score.
    Raises:
        BadInputError: no picture without text.
    """
    clean = list(islice(clean_stills(data), 0, None, every))
    if not clean:
        raise BadInputError(f"{data.name}: expected pictures without text, found none")
    drawn = [*WRITINGS, "label of a slide"]
    steps = len(drawn) + 3
    scores: list[CaseScores] = []
    cpu_s: dict[str, float] = {}

    def score(case: str, identifying: Iterable[ImageU8], other: Iterable[ImageU8]) -> None:
        progress(len(scores), steps, case)
        started = time.process_time()
        held_of = [[holds(image) for image in images] for images in (identifying, other)]
        pictures = sum(map(len, held_of))
        cpu_s[case] = round((time.process_time() - started) / max(pictures, 1), 2)
        scores.append(
            {
                "case": case,
                "identifying": len(held_of[0]),
                "identifying_held": sum(held_of[0]),
                "other": len(held_of[1]),
                "other_held": sum(held_of[1]),
            }
        )

    for number, case in enumerate(drawn):
        pictures = [
            list(islice(_draw_text(clean, case, is_identifying, rng), lines))
            for is_identifying, rng in (
                (True, np.random.default_rng((seed, number, 0))),
                (False, np.random.default_rng((seed, number, 1))),
            )
        ]
        score(case, *pictures)
    score("stills with a date of the device", dated_stills(data), ())
    score("stills with other text of the device", (), islice(device_stills(data), 0, None, every))
    score("pictures without text", (), clean)
    return {"cases": scores, "cpu_s": cpu_s}


def _draw_text(
    grounds: list[ImageU8], case: str, is_identifying: bool, rng: np.random.Generator
) -> Iterator[ImageU8]:
    line_of = identifying_line if is_identifying else other_line
    for number in count():
        line = line_of(number, rng)
        if case in WRITINGS:
            ground = grounds[int(rng.integers(len(grounds)))]
            yield overlay(ground, line, WRITINGS[case], rng)
        else:
            yield label(label_lines(line, rng), rng)
