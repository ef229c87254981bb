"""WCAG 2 AA contrast of the colour roles in static/css/tokens.css, in both themes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

TOKENS = Path(__file__).resolve().parents[3] / "static" / "css" / "tokens.css"
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
GROUNDS = ("paper", "surface", "raised", "sunken", "hover", "selected")
TEXT_PAIRS = [
    *((text, ground) for text in ("ink", "ink-2", "ink-3", "brand") for ground in GROUNDS),
    *((state, f"{state}-wash") for state in ("ok", "warn", "bad", "info", "eosin")),
    *((state, ground) for state in ("ok", "warn", "bad", "eosin") for ground in GROUNDS[:3]),
    *(("ink", f"{state}-wash") for state in ("ok", "warn", "bad", "info")),
    ("brand-strong", "brand-wash"),
    ("on-brand", "brand"),
    ("on-brand", "brand-strong"),
    ("on-bad", "bad-fill"),
]
EDGE_PAIRS = [
    *(("line-strong", ground) for ground in ("paper", "surface", "raised")),
    *(("focus", ground) for ground in GROUNDS),
]
BAR_INKS = ("#e8f1f1", "#a9c0c3")


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def roles() -> dict[str, tuple[str, str]]:
    css = TOKENS.read_text().split("@media")[0]
    return {name: (light, dark) for name, light, dark in PAIR.findall(css)}


def test_the_measure_agrees_with_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_is_readable(roles: dict[str, tuple[str, str]], theme: int) -> None:
    assert _below(4.5, TEXT_PAIRS, roles, theme) == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_edges_and_focus_rings_are_seen(roles: dict[str, tuple[str, str]], theme: int) -> None:
    assert _below(3, EDGE_PAIRS, roles, theme) == {}


def _below(
    min_contrast: float,
    pairs: Sequence[tuple[str, str]],
    roles: dict[str, tuple[str, str]],
    theme: int,
) -> dict[tuple[str, str], float]:
    contrasts = {
        (first, other): contrast(roles[first][theme], roles[other][theme]) for first, other in pairs
    }
    return {pair: value for pair, value in contrasts.items() if value < min_contrast}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", BAR_INKS)
def test_the_bar_is_readable(roles: dict[str, tuple[str, str]], ink: str, theme: int) -> None:
    assert contrast(ink, roles["bar"][theme]) >= 4.5
    assert contrast(ink, roles["bar-hover"][theme]) >= 4.5
