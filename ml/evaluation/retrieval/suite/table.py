"""The result of a suite as Markdown: one table over all sets, the pull, the margins, the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def describe(result: Mapping[str, Any]) -> str:
    """All tables of a suite."""
    parts = [_score_table(result), _pull_table(result), _margin_table(result)]
    if result.get("choose"):
        parts.append(_choice_text(result["choice"]))
    return "\n\n".join(part for part in parts if part)


def _score_table(result: Mapping[str, Any]) -> str:
    options = result["options"]
    tasks = [
        (name, task, scores)
        for name, found in result["sets"].items()
        for task, scores in found["tasks"].items()
    ]
    heads = ["method"]
    for name, task, scores in tasks:
        heads.append(f"{name}: {task}")
        if _swapped(scores):
            heads.append("stain swap")
    lines = [_row(heads), _row(["---"] * len(heads))]
    lines.append(_row(["chance", *_chance_cells(tasks)]))
    for method in result["methods"]:
        cells = [method]
        for _, _, scores in tasks:
            cells += _cells(scores["methods"][method])
        lines.append(_row(cells))
    head = (
        f"mAP@{options['k']}, mean over classes, same patient excluded where a set has patients;"
        f" in brackets 95 % over patients; stain swap: mean of {options['draws']} draws,"
        f" and what it costs."
    )
    return "\n".join([head, "", *lines])


def _chance_cells(tasks: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    cells = []
    for _, _, scores in tasks:
        cells.append(f"{scores['chance']:.3f}")
        if _swapped(scores):
            cells.append("")
    return cells


def _cells(scores: Mapping[str, Any]) -> list[str]:
    own = scores["as_is"]
    low, high = own["interval"]
    cells = [f"{own['score']:.3f} ({low:.2f} to {high:.2f})"]
    if scores["swapped"] is not None:
        cells.append(f"{scores['swapped']['score']:.3f} ({scores['cost_percent']:+.0f} %)")
    return cells


def _swapped(scores: Mapping[str, Any]) -> bool:
    return all(own["swapped"] is not None for own in scores["methods"].values())


def _pull_table(result: Mapping[str, Any]) -> str:
    pulls = {name: s["patient_pull"] for name, s in result["sets"].items() if s["patient_pull"]}
    if not pulls:
        return ""
    lines = [_row(["nearest is of the same patient", *pulls]), _row(["---"] * (len(pulls) + 1))]
    alone = [f"{pull['labels_alone']:.2f}" for pull in pulls.values()]
    lines.append(_row(["any region with the label", *alone]))
    for method in result["methods"]:
        lines.append(_row([method, *(f"{p['methods'][method]:.2f}" for p in pulls.values())]))
    return "\n".join(lines)


def _margin_table(result: Mapping[str, Any]) -> str:
    choice = result["choice"]
    if not choice:
        return ""
    sets = list(next(iter(choice["margins"].values()))["sets"])
    heads = ["ahead of the best baseline", *sets, "mean", "worst"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for name, margin in choice["margins"].items():
        numbers = [*margin["sets"].values(), margin["mean"], margin["worst"]]
        lines.append(_row([name, *(f"{value:+.3f}" for value in numbers)]))
    return "\n".join(lines)


def _choice_text(choice: Mapping[str, Any]) -> str:
    heads = ["left out", "chosen without it", "its margin there", "best there", "its margin"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for name, left in choice["left_out"].items():
        lines.append(
            _row(
                [
                    name,
                    left["chosen"],
                    f"{left['margin']:+.3f}",
                    left["best"],
                    f"{left['best_margin']:+.3f}",
                ]
            )
        )
    verdict = f"Chosen: {choice['chosen']}."
    if not choice["passes"]:
        verdict += " No candidate passes: each is below the best baseline on some set."
    if choice["cost"] is not None:
        verdict += f" Choosing costs {choice['cost']:.3f} of its mean margin."
    return "\n".join([verdict, "", *lines])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
