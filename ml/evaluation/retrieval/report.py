"""Scores of retrieval as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ml.reports.tables import markdown_table

_COLUMNS = ("method", "mAP@{k}", "95 % interval", "mAP@{l}", "P@{v}", "vote", "mAP@{k} by hits")
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
            parts.append(_class_table(task, result[task]["other_patients"], result))
    parts += [part for part in (_folds(result), _robustness(result), _signals(result)) if part]
    encoder = result["encoder"]
    head = (
        f"{result['data_set']}: {result['n_regions']} regions of {result['n_patients']} patients;"
        f" {encoder['name']} {encoder['version']} ({encoder['config_hash']}),"
        f" seed {result['options']['seed']}."
    )
    reading = (
        f"AP@K here is normalised by min(K, relevant in the gallery). The last column, by hits,"
        f" divides by the hits among the first {result['options']['k']}: it flatters, see chance."
    )
    notes = [reading]
    if "supervised_gnn" in result["labels"]["other_patients"]:
        notes.append(
            "`supervised_gnn` has learned the labels of most of its gallery, never those of the"
            " query's patient: it classifies more than it retrieves."
        )
    return "\n\n".join([head, *notes, *parts])


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
    """The encoder, class by class: what an average over classes hides."""
    k, v = result["options"]["k"], result["options"]["vote_k"]
    heads = ["class", "queries", f"mAP@{k}", f"P@{v}", "vote"]
    title = f"**{task}, each class, same patient excluded ({result['encoder']['name']})**"
    rows = []
    for label, score in table[result["encoder"]["name"]]["by_label"].items():
        numbers = [f"{score[key]:.3f}" for key in ("map", "precision", "vote_accuracy")]
        rows.append([label, str(score["queries"]), *numbers])
    return f"{title}\n\n{markdown_table(heads, rows)}"


def _folds(result: Mapping[str, Any]) -> str:
    if "folds" not in result:
        return ""
    folds = result["folds"]
    heads = ["method", *(f"fold {n}" for n in range(1, len(folds["folds"]) + 1))]
    title = f"**mAP@{result['options']['k']} by patient-disjoint fold, the other folds as gallery**"
    rows = [
        [name, *("-" if v is None else f"{v:.3f}" for v in scores)]
        for name, scores in folds["map_by_fold"].items()
    ]
    notes = [f"- {note}" for note in folds["notes"]]
    return "\n".join([title, "", markdown_table(heads, rows), "", *notes]).rstrip()


def _robustness(result: Mapping[str, Any]) -> str:
    if "stain_shift" not in result:
        return ""
    heads = ["task", "as they are", "shifted", "drop", "finds itself first"]
    title = "**Stain-shifted queries, same patient excluded**"
    rows = []
    for task, score in result["stain_shift"].items():
        shown = [f"{score[key]:.3f}" for key in ("map_clean", "map_shifted")]
        drop, own = f"{score['drop_percent']:.1f} %", f"{100 * score['p_at_1_self']:.0f} %"
        rows.append([task, *shown, drop, own])
    return f"{title}\n\n{markdown_table(heads, rows)}"


def _signals(result: Mapping[str, Any]) -> str:
    if "signals" not in result:
        return ""
    heads = ["signal", "recall@1", "MRR", "distance to itself / between regions"]
    rows = []
    for name, score in result["signals"]["augmentation_invariance"].items():
        numbers = [f"{score[key]:.3f}" for key in ("recall_at_1", "mrr", "distance_ratio")]
        rows.append([f"augmentation: {name}", *numbers])
    sections = result["signals"].get("adjacent_sections")
    if sections:
        name = f"adjacent sections (chance {sections['chance_at_1']:.3f})"
        rows.append([name, f"{sections['recall_at_1']:.3f}", f"{sections['mrr']:.3f}", ""])
    return f"**Signals without labels**\n\n{markdown_table(heads, rows)}"
