"""``python -m ml evaluate card``: the table of a model card from written results."""

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
    """Markdown, and the files that its figures come from."""

    table: str
    results: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate card``."""
    parser.add_argument(
        "results", nargs="+", type=Path, help="JSON of `evaluate matching` and `evaluate epipolar`"
    )
    parser.add_argument(
        "--descriptors", nargs="+", default=[], help="rows, in this order; default: all"
    )
    parser.add_argument("--section", default="matching", help="section of the card")
    parser.add_argument("--card", type=Path, help="model card or page whose section is replaced")


def run(args: argparse.Namespace, progress: Progress) -> CardTable:
    """Write the table of several results; nothing is measured.

    Raises:
        BadInputError: no result in a file, a descriptor that was not scored, or no such section.
    """
    results = read_results(args.results)
    table = card_table(results, names=split_names(args.descriptors))
    if args.card is not None:
        update_card(args.card, args.section, table)
    return {"table": table, "results": [path.name for path in args.results]}


def describe(result: Mapping[str, object]) -> str:
    """The table."""
    return f"{result['table']}\n"
