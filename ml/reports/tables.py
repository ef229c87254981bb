"""Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Cell = str | float | None


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Markdown table; numbers are written by ``number``."""
    lines = [_row(heads), _row(["---"] * len(heads))]
    lines += [_row([cell if isinstance(cell, str) else number(cell) for cell in r]) for r in rows]
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Text of a number: four decimals below 10, fewer above; a dash for none."""
    if value is None or not math.isfinite(value):
        return "-"
    if float(value).is_integer() and abs(value) >= 10:
        return f"{value:.0f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
