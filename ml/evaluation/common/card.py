"""``python -m ml evaluate card``: a model card's table, out of what evaluations wrote."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.common.descriptors import split_names
from ml.reports.cards import update_card
from ml.types import Progress


class CardTable(TypedDict):
    """Markdown, and the files that its figures stand in."""

    table: str
    results: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate card``."""
    parser.add_argument(
        "results", nargs="+", type=Path, help="JSON of `evaluate matching` and `evaluate epipolar`"
    )
    parser.add_argument(
        "--descriptors", nargs="+", default=[], help="rows, in this order; default: all"
    )
    parser.add_argument("--card", type=Path, help="model card whose table 'matching' is replaced")


def run(args: argparse.Namespace, progress: Progress) -> CardTable:
    """Put main figures side by side; nothing is measured.

    Raises:
        BadInputError: a file is no result, none scored a descriptor, or the card has no place.
    """
    table = card_table(read_results(args.results), names=split_names(args.descriptors))
    if args.card is not None:
        update_card(args.card, "matching", table)
    return {"table": table, "results": [path.name for path in args.results]}


def describe(result: Mapping[str, object]) -> str:
    """The table alone."""
    return f"{result['table']}\n"
