"""Scores of retrieval as tables for people, and their place in a model card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml.errors import BadInputError

_COLUMNS = ("method", "mAP@{k}", "95 % interval", "P@{v}", "vote", "mAP@{k} by hits")
_TITLES = {
    "other_patients": "leave one out, same patient excluded",
    "paper_split": "the paper's split 1 : 4, same patient allowed: leaks, never quote alone",
}


def score_tables(result: Mapping[str, Any]) -> str:
    """Markdown tables of one data set's scores, one for each task and protocol."""
    parts = []
    for task in ("labels", "groups"):
        if task in result:
            parts += [
                _table(f"{task}, {title}", result[task][protocol], result["options"])
                for protocol, title in _TITLES.items()
            ]
    encoder = result["encoder"]
    head = (
        f"{result['data_set']}: {result['n_regions']} regions of {result['n_patients']} patients;"
        f" {encoder['name']} {encoder['version']} ({encoder['config_hash']}),"
        f" seed {result['options']['seed']}."
    )
    return "\n\n".join([head, *parts])


def update_card(card: Path, result: Mapping[str, Any]) -> None:
    """Replace the figures of a data set in a model card, whole or not at all.

    They stand between ``<!-- figures: NAME -->`` and ``<!-- end figures -->``.

    Raises:
        BadInputError: the card has no such place.
    """
    text = card.read_text(encoding="utf-8")
    start = f"<!-- figures: {result['data_set']} -->"
    pattern = re.compile(re.escape(start) + r".*?<!-- end figures -->", re.DOTALL)
    if not pattern.search(text):
        raise BadInputError(
            f"{card.name}: expected a line {start!r} and one '<!-- end figures -->'"
        )
    figures = f"{start}\n{score_tables(result)}\n<!-- end figures -->"
    temporary = card.with_name(f".{card.name}.tmp")
    temporary.write_text(pattern.sub(lambda _: figures, text), encoding="utf-8")
    temporary.replace(card)


def _table(title: str, table: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    heads = [c.format(k=options["k"], v=options["vote_k"]) for c in _COLUMNS]
    lines = [f"**{title}**", "", _row(heads), _row(["---"] * len(heads))]
    for name, score in table.items():
        low, high = score.get("map_interval", (None, None))
        interval = "" if low is None else f"{low:.3f} to {high:.3f}"
        numbers = [f"{score[key]:.3f}" for key in ("precision", "vote_accuracy", "map_by_hits")]
        lines.append(_row([name, f"{score['map']:.3f}", interval, *numbers]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
