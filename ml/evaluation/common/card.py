"""``python -m ml evaluate card``: a model card's figures, out of what evaluations wrote."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ml.errors import BadInputError
from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.common.descriptors import split_names
from ml.reports.cards import update_card
from ml.types import Progress

SECTIONS = ("matching", "joint")
"""The table of descriptors, and a sentence on ``train graph --joint``."""


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
    parser.add_argument("--section", choices=SECTIONS, default=SECTIONS[0], help="what is written")
    parser.add_argument("--card", type=Path, help="model card whose section is replaced")


def run(args: argparse.Namespace, progress: Progress) -> CardTable:
    """Put main figures side by side; nothing is measured.

    Raises:
        BadInputError: a file is no result, none scored a descriptor, or the card has no place.
    """
    results = read_results(args.results)
    if args.section == "joint":
        table = joint_line(results)
    else:
        table = card_table(results, names=split_names(args.descriptors))
    if args.card is not None:
        update_card(args.card, args.section, table)
    return {"table": table, "results": [path.name for path in args.results]}


def joint_line(results: Sequence[Mapping[str, Any]]) -> str:
    """What the rule for ``train graph --joint`` is applied to, beside what ships, in a sentence.

    Args:
        results: of that training, with ``hard_core``, its row in the hard protocol; and of
            ``evaluate matching --protocols hard`` with ``graph``.
    Raises:
        BadInputError: one of the two is missing.
    """
    joint = next((found for found in results if "entropy_share" in found), None)
    hard = next((found["hard"] for found in results if "graph" in found.get("hard", {})), None)
    if joint is None or hard is None:
        raise BadInputError("joint: expected a training of graph, and graph in the hard protocol")
    own, shuffled = (joint[key]["all"]["precision"] for key in ("validation", "positions_shuffled"))
    mutual = joint["hard_core"]["raw_precision"]
    shipped = hard["graph"]["families"]["core"]["raw_precision"]
    return (
        f"After {joint['train_config']['steps']:,} steps the entropy is"
        f" {joint['entropy_share']:.2f} of the greatest, shuffling costs {own - shuffled:.2f}, and"
        f" NN precision is {own:.3f} on the held-out stills; of mutual neighbours detected"
        f" independently {mutual:.3f} are right, of the shipped file's {shipped:.3f}."
    )


def describe(result: Mapping[str, object]) -> str:
    """The table alone."""
    return f"{result['table']}\n"
