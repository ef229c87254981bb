"""``python -m ml evaluate plots``: the plot and page of ``evaluate epipolar`` out of its result."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypedDict

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.evaluation.epipolar.tables import write_page
from ml.evaluation.matching.plots import write_epipolar_plots
from ml.types import Progress


class Plots(TypedDict):
    """Names of the files."""

    plots: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate plots``."""
    parser.add_argument("result", type=Path, help="JSON of `evaluate epipolar`")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plot")
    parser.add_argument("--page", type=Path, help="page whose tables of poses are replaced")


def run(args: argparse.Namespace, progress: Progress) -> Plots:
    """Draw and write it; nothing is measured.

    Raises:
        BadInputError: the file is not a result of ``evaluate epipolar``; see ``update_card``.
    """
    (result,) = read_results([args.result])
    if not {"scores", "options"} <= result.keys() or "gaps" not in result["options"]:
        raise BadInputError(f"{args.result.name}: expected the JSON of evaluate epipolar")
    if args.page is not None:
        write_page(args.page, result)
    return {"plots": write_epipolar_plots(args.out, result)}
