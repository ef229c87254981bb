"""Colours of labels stand apart, whoever looks at them."""

from __future__ import annotations

import numpy as np
import pytest

from portal.annotations.colors import (
    APART,
    CONTRAST,
    DARK,
    FROM_TISSUE,
    TISSUE,
    _perceived_oklab,
    color_suggest,
    contrast,
    distance,
    too_close,
)
from portal.annotations.services.labels import STARTER_LABELS


def test_a_colour_is_no_distance_from_itself() -> None:
    assert distance("#3d7ea6", "#3d7ea6") == 0


def test_black_and_white_are_a_hundred_apart() -> None:
    # Oklab's lightness runs from 0 to 1; greys stay greys in each simulation, within rounding.
    assert distance("#000000", "#ffffff") == pytest.approx(100, abs=0.5)


def test_red_and_green_meet_for_those_who_see_no_green() -> None:
    red, green = "#cc3300", "#669900"
    assert distance(red, green) < APART < distance(red, "#0033cc")
    ((first, second, who),) = too_close([red, green])
    assert (first, second, who) == (0, 1, "no green (deuteranopia)")


def test_suggestions_stay_apart_from_each_other_and_from_tissue() -> None:
    colors: list[str] = []
    for _ in range(9):
        colors.append(color_suggest(colors))
    assert len(set(colors)) == 9
    assert too_close(colors) == []
    assert min(distance(color, other) for color in colors[:6] for other in TISSUE) > APART


def test_no_suggestion_is_too_dark_or_near_tissue_colour() -> None:
    colors: list[str] = []
    for _ in range(12):
        colors.append(color_suggest(colors))
    assert min(contrast(color, DARK) for color in colors) >= CONTRAST
    assert min(_apart(color, other) for color in colors for other in TISSUE) >= FROM_TISSUE


def _apart(one: str, other: str) -> float:
    """In Oklab, for full colour vision."""
    seen = _perceived_oklab((one, other))[0]
    return float(np.linalg.norm(seen[0] - seen[1]))


def test_a_single_colour_has_no_close_neighbour() -> None:
    assert too_close(["#112233"]) == [] and too_close([]) == []


def test_the_starter_labels_are_distinct_in_every_colour_vision() -> None:
    assert too_close([color for _, color in STARTER_LABELS]) == []
    dark = [name for name, color in STARTER_LABELS if contrast(color, DARK) < 2.95]
    assert not dark  # as graphics ask for, on a dark page
