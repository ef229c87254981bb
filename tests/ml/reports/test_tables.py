"""Markdown tables."""

from __future__ import annotations

import math

import pytest

from ml.reports.tables import markdown_table, number


def test_a_table_equals_hand_worked_markdown() -> None:
    assert markdown_table(["name", "px"], [["sift", 1.5], ["orb", None]]) == (
        "| name | px |\n| --- | --- |\n| sift | 1.5000 |\n| orb | - |"
    )
    assert markdown_table(["name"], []) == "| name |\n| --- |"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.1235"),
        (3.0, "3.0000"),
        (12.0, "12"),
        (1234.56, "1234.6"),
        (None, "-"),
        (math.nan, "-"),
        (-math.inf, "-"),
    ],
)
def test_numbers_are_rounded_to_significant_digits(value: float | None, text: str) -> None:
    assert number(value) == text
