"""Rows of some descriptors put into the result of an earlier run over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.files import write_json
from ml.reports.figures import figures_of
from ml.types import JsonObject

SAME = ("options", "data", "sequence", "frames")
"""What two results must agree on to stand in one file."""

MERGED = (
    "papers",
    "detectors",
    "carried",
    "leak",
    "hard",
    "unrelated",
    "confidence",
    "scores",
    "t_test",
    "cross_sequence",
    "versions",
)
"""What is held by descriptor, or by detector and descriptor."""


ADDED = ("cross_sequence",)
"""What a file may lack: it is scored only where it is asked for."""


def renew(path: Path, result: Mapping[str, Any]) -> JsonObject:
    """Replace in a file of ``--figures`` the rows that ``result`` has anew; the others stay.

    Returns:
        What the file holds then.
    Raises:
        BadInputError: the file is not of an evaluation, lacks a protocol, or was made with other
            options or other data.
    """
    old = read_results([path])[0]
    fresh = figures_of(result)
    for key in SAME:
        held, made = old.get(key), fresh.get(key)
        if isinstance(held, dict) and isinstance(made, dict):
            made = {name: made.get(name) for name in held}
        if key in old and held != made:
            raise BadInputError(f"{path.name}: {key}: expected {held}, got {made}")
    for key in MERGED:
        if key not in fresh:
            continue
        if key not in old and key not in ADDED:
            raise BadInputError(f"{path.name}: {key}: expected rows of that protocol, found none")
        for name, row in fresh[key].items():
            if key == "detectors":
                old[key].setdefault(name, {}).update(row)
            else:
                old.setdefault(key, {})[name] = row
    write_json(path, old)
    return old
