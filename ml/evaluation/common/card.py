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

JOINT = "joint"
"""The section of a sentence on ``train graph --joint``; every other one holds the table."""


class CardTable(TypedDict):
    """Markdown, and the files that its figures come from."""

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
    parser.add_argument(
        "--section",
        default="matching",
        help=f"section of the card; {JOINT}: a sentence on `train graph --joint`",
    )
    parser.add_argument("--card", type=Path, help="model card or page whose section is replaced")


def run(args: argparse.Namespace, progress: Progress) -> CardTable:
    """Put main figures side by side; nothing is measured.

    Raises:
        BadInputError: no result in a file, a descriptor that was not scored, or no such section.
    """
    results = read_results(args.results)
    if args.section == JOINT:
        table = joint_line(results)
    else:
        table = card_table(results, names=split_names(args.descriptors))
    if args.card is not None:
        update_card(args.card, args.section, table)
    return {"table": table, "results": [path.name for path in args.results]}


def joint_line(results: Sequence[Mapping[str, Any]]) -> str:
    """The figures that decide on ``train graph --joint``, beside those of what ships, in words.

    Args:
        results: of ``train graph``, that with ``--joint`` and that of what ships; and of
            ``evaluate matching --protocols hard``, with ``graph`` and with the joint weights.
    Raises:
        BadInputError: one of them is missing.
    """
    trained = {
        found["train_config"]["train_cnn"]: found for found in results if "entropy_share" in found
    }
    mutual = {
        ":" in name: row["families"]["core"]["raw_precision"]  # of a file, or what ships
        for found in results
        for name, row in found.get("hard", {}).items()
        if name.partition(":")[0] == "graph"
    }
    if trained.keys() != {True, False} or mutual.keys() != {True, False}:
        raise BadInputError(
            "joint: expected trainings of graph, one of them joint, and both in the hard protocol"
        )
    joint, ships = trained[True], trained[False]
    return (
        f"After {joint['train_config']['steps']:,} steps the entropy is"
        f" {joint['entropy_share']:.2f} of the greatest, shuffling costs {_shuffling(joint):.2f},"
        f" and NN precision is {joint['validation']['all']['precision']:.3f} on the held-out"
        f" stills; {mutual[True]:.3f} of its mutual neighbours detected independently are right,"
        f" and {mutual[False]:.3f} of the shipped file's. The shipped file's entropy is"
        f" {ships['entropy_share']:.4f} of the greatest, and shuffling costs"
        f" {_shuffling(ships):.2f}."
    )


def _shuffling(found: Mapping[str, Any]) -> float:
    """What it costs a graph network to be given other key points' positions."""
    own, shuffled = (found[key]["all"]["precision"] for key in ("validation", "positions_shuffled"))
    return float(own - shuffled)


def describe(result: Mapping[str, object]) -> str:
    """The table alone."""
    return f"{result['table']}\n"
