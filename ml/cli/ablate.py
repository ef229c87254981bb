"""``python -m ml ablate``: the comparisons that the retrieval paper invites."""

from __future__ import annotations

import argparse

from ml.cli.output import terminal_progress
from ml.evaluation.retrieval import ablation


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``ablate``."""
    parser = subparsers.add_parser(
        "ablate", help="three graph networks and none, with and without labels"
    )
    ablation.add_arguments(parser)


def run(args: argparse.Namespace) -> ablation.GraphAblation:
    """Train every combination and score it; see ``ablation.run``."""
    with terminal_progress() as progress:
        return ablation.run(args, progress)


def describe(result: ablation.GraphAblation) -> str:
    """The table as Markdown."""
    return ablation.describe(result)
