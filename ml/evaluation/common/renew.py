"""Rows of some descriptors put into the result of an earlier run over all of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.files import write_text

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


def renew(path: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Replace in a file of ``--json`` the rows that ``result`` has anew; the others stay.

    Seconds and the points of curves are left out, as they are of the files in ``docs/results``.

    Returns:
        What the file holds then.
    Raises:
        BadInputError: the file is none of an evaluation, lacks a protocol, or was made with other
            options or of other data.
    """
    old = read_results([path])[0]
    fresh = json.loads(json.dumps(_trimmed(result), default=str))
    for key in SAME:
        held, made = old.get(key), fresh.get(key)
        if isinstance(held, dict) and isinstance(made, dict):
            made = {name: made.get(name) for name in held}
        if key in old and held != made:
            raise BadInputError(f"{path.name}: {key}: expected {held}, got {made}")
    for key in MERGED:
        if key not in fresh:
            continue
        if key not in old:
            raise BadInputError(f"{path.name}: {key}: expected rows of that protocol, found none")
        for name, row in fresh[key].items():
            if key == "detectors":
                old[key].setdefault(name, {}).update(row)
            else:
                old[key][name] = row
    write_text(path, json.dumps(old, indent=1, allow_nan=False) + "\n")
    return old


def _trimmed(value: Any, *, within: str = "") -> Any:
    """Without seconds, and without the lists of points in curves; what is not finite is null."""
    if isinstance(value, Mapping):
        return {
            key: _trimmed(item, within="curves" if "curves" in (key, within) else "")
            for key, item in value.items()
            if key != "seconds" and not (within == "curves" and isinstance(item, list | tuple))
        }
    if isinstance(value, float) and math.isnan(value):
        return None
    return [_trimmed(item) for item in value] if isinstance(value, list | tuple) else value
