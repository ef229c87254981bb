"""Result of a suite as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ml.evaluation.retrieval.suite.choice import SuiteChoice
from ml.evaluation.retrieval.suite.run import TaskResult
from ml.evaluation.retrieval.suite.scores import Scores, SuiteTaskScores
from ml.reports.tables import markdown_table


def describe(result: Mapping[str, Any]) -> str:
    """Markdown tables of a suite."""
    parts = [score_table(result), _pull_table(result), _margin_table(result)]
    if result["choose"]:
        parts.append(_choice_text(result["choice"]))
    return "\n\n".join(part for part in parts if part)


def card_figures(result: Mapping[str, Any]) -> str:
    """Figures of the first encoder for its card: a table, and text on pull, margins and choice."""
    methods = result["methods"]
    encoder_rows = _rows_of_first_encoder(methods)
    method_names = [m for m in methods if m in encoder_rows or methods[m]["baseline"]]
    parts = [
        score_table(result, method_names),
        _pull_line(result, encoder_rows[0]),
        _close_line(result, encoder_rows[0]),
        *_margin_lines(result),
    ]
    return "\n\n".join(part for part in parts if part)


def card_lines(result: Mapping[str, Any]) -> str:
    """Figures as lines, for a card with the table of another suite."""
    methods = result["methods"]
    baselines = [m for m in methods if methods[m]["baseline"]]
    lines = []
    for title, scores in _tasks(result):
        of = {name: method_scores.as_is for name, method_scores in scores["methods"].items()}
        encoders = [f"{name} {_with_interval(of[name])}" for name in of if name not in baselines]
        best = max(baselines, key=lambda name: of[name].score)
        lines.append(
            f"- {title}: {', '.join(encoders)}; best baseline {best} {of[best].score:.3f},"
            f" chance {scores['chance']:.3f}."
        )
    return "\n".join(lines)


def _rows_of_first_encoder(methods: Mapping[str, Any]) -> list[str]:
    """Names of the rows of the first encoder, with all query methods."""
    first = next(m for m in methods.values() if not m["baseline"])
    return [
        name
        for name, m in methods.items()
        if not m["baseline"] and m.get("config_hash") == first.get("config_hash")
    ]


def _tasks(result: Mapping[str, Any]) -> list[tuple[str, TaskResult]]:
    return [
        (f"{name}: {task}", scores)
        for name, set_result in result["sets"].items()
        for task, scores in set_result["tasks"].items()
    ]


def score_table(result: Mapping[str, Any], methods: Sequence[str] | None = None) -> str:
    """Table over all sets with a legend; ``methods`` limits the rows."""
    options = result["options"]
    tasks = _tasks(result)
    heads, chance = ["method"], ["chance"]
    for title, scores in tasks:
        heads += [title, "stain swap"] if _is_swapped(scores) else [title]
        chance += [f"{scores['chance']:.3f}", *([""] if _is_swapped(scores) else [])]
    rows = [chance]
    for method in result["methods"] if methods is None else methods:
        rows.append([method, *(c for _, s in tasks for c in _cells(s["methods"][method]))])
    return (
        f"mAP@{options.k}, the mean over classes; the query's patient is excluded where a set has"
        " patients. In brackets: the 95 % interval, patients resampled. Stain swap: the gallery in"
        f" the stains of other patients, the mean of {options.draws} draws, and the loss."
        f"\n\n{markdown_table(heads, rows)}"
    )


def _cells(scores: SuiteTaskScores) -> list[str]:
    swapped = scores.swapped
    cells = [_with_interval(scores.as_is)]
    if swapped is not None:
        cells.append(f"{swapped.score:.3f} ({scores.cost_percent:.0f} %)")
    return cells


def _with_interval(scores: Scores) -> str:
    low, high = scores.interval
    return f"{scores.score:.3f} ({low:.2f} to {high:.2f})"


def _is_swapped(scores: Mapping[str, Any]) -> bool:
    return all(method_scores.swapped is not None for method_scores in scores["methods"].values())


def _pull_table(result: Mapping[str, Any]) -> str:
    pulls = {name: s["patient_pull"] for name, s in result["sets"].items() if s["patient_pull"]}
    if not pulls:
        return ""
    rows = [["any with its label", *(f"{p['labels_alone']:.2f}" for p in pulls.values())]]
    for method in result["methods"]:
        rows.append([method, *(f"{p['methods'][method]:.2f}" for p in pulls.values())])
    return markdown_table(["how often the nearest is of the same patient", *pulls], rows)


def _pull_line(result: Mapping[str, Any], method: str) -> str:
    """Sentence on the pull of patients; empty if no set has patients."""
    pulls = {name: s["patient_pull"] for name, s in result["sets"].items() if s["patient_pull"]}
    if not pulls:
        return ""
    shares = [
        f"{name} {p['methods'][method]:.2f}"
        f" (a random region with its label {p['labels_alone']:.2f})"
        for name, p in pulls.items()
    ]
    return (
        f"How often the nearest region is of the same patient, when allowed: {', '.join(shares)}."
    )


def _close_line(result: Mapping[str, Any], method: str) -> str:
    """Sentence on close hits; empty without a calibration or unrelated sets."""
    shares = [
        f"{title} {close.found:.2f} ({close.unrelated:.2f})"
        for title, scores in _tasks(result)
        if (close := scores["called_close"].get(method)) is not None
    ]
    if not shares:
        return ""
    return (
        f"Share of searches in which {method} calls the nearest right answer close (in brackets:"
        " the nearest of as many regions of another organ, laboratory and patient):"
        f" {', '.join(shares)}."
    )


def _margin_lines(result: Mapping[str, Any]) -> list[str]:
    """Sentences on the margins of all candidates and on the choice."""
    choice: SuiteChoice | None = result["choice"]
    if not choice:
        return []
    margins = [
        f"{name} {m.mean:+.3f} ({', '.join(f'{key} {v:+.3f}' for key, v in m.sets.items())})"
        for name, m in choice.margins.items()
    ]
    lines = [f"Margin over the best baseline, mean over sets (each set): {'; '.join(margins)}."]
    if result["choose"]:
        choices = [
            f"without {key}: {left_out_choice.chosen}"
            for key, left_out_choice in choice.left_out.items()
        ]
        lines.append(_verdict(choice) + (f" Chosen {'; '.join(choices)}." if choices else ""))
    return lines


def _margin_table(result: Mapping[str, Any]) -> str:
    choice: SuiteChoice | None = result["choice"]
    if not choice:
        return ""
    sets = list(next(iter(choice.margins.values())).sets)
    rows = [
        [name, *(f"{v:+.3f}" for v in (*m.sets.values(), m.mean, m.worst))]
        for name, m in choice.margins.items()
    ]
    return markdown_table(["ahead of the best baseline", *sets, "mean", "worst"], rows)


def _choice_text(choice: SuiteChoice) -> str:
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
    return f"{_verdict(choice)}\n\n{markdown_table(heads, rows)}"


def _verdict(choice: SuiteChoice) -> str:
    verdict = f"Chosen: {choice.chosen}."
    if not choice.passes:
        verdict += " No candidate passes: each is below the best baseline on some set."
    if choice.cost is not None:
        verdict += " Where the choice is made without the set that it is measured on, the margin is"
        verdict += f" {choice.cost:.3f} smaller."
    return verdict
