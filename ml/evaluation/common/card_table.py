"""The table of a descriptor's model card, from the results of several evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.evaluation.common.descriptors import table_name
from ml.reports.tables import Cell, markdown_table
from ml.types import JsonObject

Read = Callable[[Mapping[str, Any]], Cell]

_COLUMNS: tuple[tuple[str, str, Read], ...] = (
    ("papers", "NN precision", lambda scores: scores["families"]["core"]["nn_precision"]),
    ("papers", "exact partner", lambda scores: scores["families"]["core"]["exact"]),
    ("papers", "NNT score", lambda scores: scores["families"]["core"]["nnt_score"]),
    ("hard", "hard: mutual precision", lambda scores: scores["families"]["core"]["raw_precision"]),
    ("hard", "hard: precision", lambda scores: scores["families"]["core"]["precision"]),
    ("hard", "hard: right a pair", lambda scores: scores["families"]["core"]["right"]),
    ("unrelated", "unrelated: matches", lambda scores: f"{scores['unrelated']['matches']:.0f}"),
    ("scores", "partner found", lambda scores: scores["all"]["partner_found"]),
    ("scores", "epipolar error, px", lambda scores: scores["all"]["epipolar_px"]),
    ("scores", "pose AUC 10", lambda scores: scores["all"]["auc_10deg"]),
)
"""Protocol (a key of a result), title, and reader of a descriptor's figure."""


def card_table(results: Sequence[Mapping[str, Any]], *, names: Sequence[str] = ()) -> str:
    """Markdown table with a row for each descriptor and a column for each main figure.

    Args:
        results: Results of ``evaluate matching`` and ``evaluate epipolar``. The first row of a
            descriptor under a protocol counts.
        names: Descriptors shown, in this order; empty for all. Weights of a file are named as in
            ``table_name``.
    Raises:
        BadInputError: a name that was not scored.
    """
    scored: dict[str, dict[str, Any]] = {}
    for result in results:
        for protocol in {protocol for protocol, _, _ in _COLUMNS} & result.keys():
            protocol_rows = scored.setdefault(protocol, {})
            for name, row in result[protocol].items():
                protocol_rows.setdefault(table_name(name), row)
    for result in results:
        if "carried" in result:  # more methods of the same protocol
            scored["papers"] = {**scored.get("papers", {}), **result["carried"]}
    columns = [
        (scored[protocol], title, read) for protocol, title, read in _COLUMNS if protocol in scored
    ]
    result_names = dict.fromkeys(name for column_result, _, _ in columns for name in column_result)
    if unknown := [name for name in names if name not in result_names]:
        raise BadInputError(f"descriptor {unknown[0]!r}: expected one of {', '.join(result_names)}")
    rows = [
        [name, *(_cell(column_result.get(name), read) for column_result, _, read in columns)]
        for name in names or result_names
    ]
    return markdown_table(["descriptor", *(title for _, title, _ in columns)], rows)


def read_results(paths: Iterable[Path]) -> list[JsonObject]:
    """Read results written with ``--json`` or ``--figures``.

    Raises:
        BadInputError: a file is missing or holds no JSON object.
    """
    return [_read(path) for path in paths]


def _read(path: Path) -> JsonObject:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        # The text of an OSError would show the whole path.
        reason = (error.strerror or "unreadable").lower() if isinstance(error, OSError) else error
        raise BadInputError(f"{path.name}: expected the JSON of an evaluation ({reason})") from None
    if not isinstance(document, dict):
        raise BadInputError(f"{path.name}: expected a JSON object, got {type(document).__name__}")
    return document


def _cell(result: Mapping[str, Any] | None, read: Read) -> Cell:
    """A descriptor's figure; None if it was not scored."""
    try:
        return None if result is None else read(result)
    except KeyError:
        return None
