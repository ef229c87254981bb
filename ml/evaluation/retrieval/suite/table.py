"""The result of a suite as Markdown: one table over all sets, the pull, the margins, the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ml.evaluation.retrieval.suite.choice import Choice
from ml.evaluation.retrieval.suite.scores import TaskScores
from ml.reports.tables import markdown_table


def describe(result: Mapping[str, Any]) -> str:
    """All tables of a suite."""
    parts = [score_table(result), _pull_table(result), _margin_table(result)]
    if result["choose"]:
        parts.append(_choice_text(result["choice"]))
    return "\n\n".join(part for part in parts if part)


def score_table(result: Mapping[str, Any]) -> str:
    """The one table over all sets, with what its columns mean."""
    options = result["options"]
    tasks = [
        (f"{name}: {task}", scores)
        for name, found in result["sets"].items()
        for task, scores in found["tasks"].items()
    ]
    heads, chance = ["method"], ["chance"]
    for title, scores in tasks:
        heads += [title, "stain swap"] if _is_swapped(scores) else [title]
        chance += [f"{scores['chance']:.3f}", *([""] if _is_swapped(scores) else [])]
    rows = [chance]
    for method in result["methods"]:
        rows.append([method, *(c for _, s in tasks for c in _cells(s["methods"][method]))])
    return (
        f"mAP@{options.k}, the mean over classes, same patient excluded where a set has"
        " patients; in brackets 95 % when patients are drawn anew. Stain swap: the gallery in the"
        f" stains of other patients, the mean of {options.draws} draws, and what it costs."
        f"\n\n{markdown_table(heads, rows)}"
    )


def _cells(scores: TaskScores) -> list[str]:
    own, swapped = scores.as_is, scores.swapped
    low, high = own.interval
    cells = [f"{own.score:.3f} ({low:.2f} to {high:.2f})"]
    if swapped is not None:
        cells.append(f"{swapped.score:.3f} ({scores.cost_percent:.0f} %)")
    return cells


def _is_swapped(scores: Mapping[str, Any]) -> bool:
    return all(own.swapped is not None for own in scores["methods"].values())


def _pull_table(result: Mapping[str, Any]) -> str:
    pulls = {name: s["patient_pull"] for name, s in result["sets"].items() if s["patient_pull"]}
    if not pulls:
        return ""
    rows = [["any with its label", *(f"{p['labels_alone']:.2f}" for p in pulls.values())]]
    for method in result["methods"]:
        rows.append([method, *(f"{p['methods'][method]:.2f}" for p in pulls.values())])
    return markdown_table(["how often the nearest is of the same patient", *pulls], rows)


def _margin_table(result: Mapping[str, Any]) -> str:
    choice: Choice | None = result["choice"]
    if not choice:
        return ""
    sets = list(next(iter(choice.margins.values())).sets)
    rows = [
        [name, *(f"{v:+.3f}" for v in (*m.sets.values(), m.mean, m.worst))]
        for name, m in choice.margins.items()
    ]
    return markdown_table(["ahead of the best baseline", *sets, "mean", "worst"], rows)


def _choice_text(choice: Choice) -> str:
    heads = ["left out", "chosen without it", "its margin there", "best there", "its margin"]
    rows = [
        [
            name,
            left.chosen,
            f"{left.margin:+.3f}",
            left.best,
            f"{left.best_margin:+.3f}",
        ]
        for name, left in choice.left_out.items()
    ]
    verdict = f"Chosen: {choice.chosen}."
    if not choice.passes:
        verdict += " No candidate passes: each is below the best baseline on some set."
    if choice.cost is not None:
        verdict += f" Chosen without the set it is measured on, the margin is {choice.cost:.3f}"
        verdict += " less."
    return f"{verdict}\n\n{markdown_table(heads, rows)}"
