"""``python -m ml evaluate plots``: what ``evaluate epipolar`` draws, out of what it wrote."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypedDict

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.evaluation.matching.plots import write_epipolar_plots
from ml.types import Progress


class Plots(TypedDict):
    """Names of the files."""

    plots: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate plots``."""
    parser.add_argument("result", type=Path, help="JSON of `evaluate epipolar`")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plot")


def run(args: argparse.Namespace, progress: Progress) -> Plots:
    """Draw it; nothing is measured.

    Raises:
        BadInputError: the file is no result of ``evaluate epipolar``.
    """
    (result,) = read_results([args.result])
    if not {"scores", "options"} <= result.keys() or "gaps" not in result["options"]:
        raise BadInputError(f"{args.result.name}: expected the JSON of evaluate epipolar")
    return {"plots": write_epipolar_plots(args.out, result)}
