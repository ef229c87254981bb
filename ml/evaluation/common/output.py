"""Outputs of key point evaluations: cards, plots, and rows merged into an earlier result."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.files import write_json
from ml.reports.figures import figures_of
from ml.types import JsonObject

SAME = ("options", "data", "sequence", "frames")
"""Keys on which two results must agree to share one file."""

MERGED = (
    "papers",
    "carried",
    "hard",
    "unrelated",
    "scores",
    "t_test",
    "versions",
)
"""Keys of results by descriptor."""


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for cards, merged results, plots and pictures."""
    add = parser.add_argument
    add("--card", type=Path, help="model card whose table 'matching' is replaced")
    add("--results", type=Path, nargs="*", default=[], help="JSON results with more columns for it")
    add("--update", type=Path, help="JSON result whose rows of these descriptors are replaced")
    add("--plots", type=Path, help="folder for the plots")
    add("--pictures", type=Path, help="folder for pictures of matches: right green, wrong red")


def update_result(path: Path, result: Mapping[str, Any]) -> JsonObject:
    """Replace the rows of a file of ``--figures`` that ``result`` has; the others stay.

    Returns:
        The new contents of the file.
    Raises:
        BadInputError: the file is not of an evaluation, lacks a protocol, or was made with other
            options or other data.
    """
    old = read_results([path])[0]
    fresh = figures_of(result)
    for key in SAME:
        previous, new = old.get(key), fresh.get(key)
        if isinstance(previous, dict) and isinstance(new, dict):
            new = {name: new.get(name) for name in previous}
        if key in old and previous != new:
            raise BadInputError(f"{path.name}: {key}: expected {previous}, got {new}")
    for key in MERGED:
        if key not in fresh:
            continue
        if key not in old:
            raise BadInputError(f"{path.name}: {key}: expected rows of that protocol, found none")
        old[key].update(fresh[key])
    write_json(path, old)
    return old
