"""Retrieval scores as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ml.reports.tables import markdown_table

_COLUMNS = ("method", "mAP@{k}", "95 % interval", "mAP@{l}", "P@{v}", "vote", "mAP@{k} by hits")


def score_tables(result: Mapping[str, Any]) -> str:
    """Markdown tables of one data set's scores, one for each task."""
    parts = []
    for task in ("labels", "groups"):
        if task in result:
            title = f"{task}, leave one out, same patient excluded"
            parts.append(_table(title, result[task]["other_patients"], result["options"]))
            parts.append(_class_table(task, result[task]["other_patients"], result))
    encoder = result["encoder"]
    head = (
        f"{result['data_set']}: {result['n_regions']} regions of {result['n_patients']} patients;"
        f" {encoder['name']} {encoder['version']} ({encoder['config_hash']}),"
        f" seed {result['options']['seed']}."
    )
    explanation = (
        f"AP@K is normalised by min(K, relevant in the gallery). The last column, by hits, divides"
        f" by the hits among the first {result['options']['k']}, which is optimistic; see chance."
    )
    return "\n\n".join([head, explanation, *parts])


def _table(title: str, table: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    heads = [c.format(k=options["k"], l=options["long_k"], v=options["vote_k"]) for c in _COLUMNS]
    rows = []
    for name, score in table.items():
        low, high = score.get("map_interval", (None, None))
        interval = "" if low is None else f"{low:.3f} to {high:.3f}"
        numbers = [
            f"{score[key]:.3f}" for key in ("map_long", "precision", "vote_accuracy", "map_by_hits")
        ]
        rows.append([name, f"{score['map']:.3f}", interval, *numbers])
    return f"**{title}**\n\n{markdown_table(heads, rows)}"


def _class_table(task: str, table: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Table of the encoder's scores by class."""
    k, v = result["options"]["k"], result["options"]["vote_k"]
    heads = ["class", "queries", f"mAP@{k}", f"P@{v}", "vote"]
    title = f"**{task}, each class, same patient excluded ({result['encoder']['name']})**"
    rows = []
    for label, score in table[result["encoder"]["name"]]["by_label"].items():
        numbers = [f"{score[key]:.3f}" for key in ("map", "precision", "vote_accuracy")]
        rows.append([label, str(score["queries"]), *numbers])
    return f"{title}\n\n{markdown_table(heads, rows)}"
