"""Figures in model cards."""

from __future__ import annotations

from pathlib import Path

from ml.errors import BadInputError
from ml.files import write_text

LAST = "<!-- end figures -->"


def update_card(card: Path, section: str, text: str) -> None:
    """Replace the figures of a section of a card atomically.

    They are between the lines ``<!-- figures: SECTION -->`` and ``<!-- end figures -->``.

    Raises:
        BadInputError: no such card, or it lacks the markers.
    """
    first = f"<!-- figures: {section} -->"
    if not card.is_file():
        raise BadInputError(f"{card.name}: expected a model card, found none")
    before, has_first, after_first = card.read_text(encoding="utf-8").partition(first)
    _, has_last, after = after_first.partition(LAST)
    if not has_first or not has_last:
        raise BadInputError(f"{card.name}: expected the markers {first} and {LAST}")
    body = text.strip("\n")
    write_text(card, f"{before}{first}\n{body}\n{LAST}{after}")
