"""``python -m ml evaluate query``: choose the query method of slide searches.

It scores expansion and diffusion with several settings over the sets of a suite and applies the
rule in ``query_choice``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ml.evaluation.common.data import data_folder
from ml.evaluation.retrieval.metrics import macro_bootstrap, macro_mean
from ml.evaluation.retrieval.suite.config import SHIPPED, SuiteConfig, read_suite
from ml.evaluation.retrieval.suite.methods import encoder_methods
from ml.evaluation.retrieval.suite.query_choice import (
    TOLERANCE,
    candidates,
    choose_query,
)
from ml.evaluation.retrieval.suite.query_methods import QueryMethod
from ml.evaluation.retrieval.suite.run import AS_IS, SWAPPED, read_sets, suite_vectors
from ml.evaluation.retrieval.suite.scores import Interval, interval_of, query_precisions
from ml.evaluation.retrieval.suite.sets import Task as SuiteTask
from ml.evaluation.retrieval.suite.vectors import SetVectors
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import ArrayF64, Progress

SECTION = "query"
"""Section of a card that is replaced."""


class CandidateScores(TypedDict):
    """Scores of a candidate on a task, and the gain over the search by distance.

    Attributes:
        as_is, swapped: score, and the mean over the stain swaps; None without swaps.
        gain: mean over both. interval: 95 % of the gain.
    """

    as_is: float
    swapped: float | None
    gain: float
    interval: Interval


class QueryTask(TypedDict):
    """A task: number of queries, and its scores by candidate."""

    set: str
    task: str
    queries: int
    candidates: dict[str, CandidateScores]


class QueryResult(TypedDict):
    """Result of ``run``.

    Attributes:
        tasks: as scored. means, worst: of each candidate, see ``CandidateScore``.
        chosen: by the rule. left_out: by set, the candidate chosen without it and its score there.
        cost: see ``QueryChoice``.
    """

    suite: str
    encoder: str
    config_hash: str
    tolerance: float
    tasks: list[QueryTask]
    means: dict[str, float]
    worst: dict[str, float]
    chosen: str
    left_out: dict[str, tuple[str, float]]
    cost: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate query``."""
    parser.add_argument("--suite", type=Path, default=Path(SHIPPED.name), metavar="FILE")
    parser.add_argument("--data", type=Path, help="by default TESSERA_DATA")
    parser.add_argument("--encoder", default="default", help="name or file")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors (made if needed)")
    parser.add_argument("--card", type=Path, help=f"page whose section '{SECTION}' is renewed")


def run(args: argparse.Namespace, progress: Progress) -> QueryResult:
    """Score all candidates, and choose one.

    Raises:
        BadInputError: a suite file, data or an encoder that cannot be scored.
    """
    config = read_suite(args.suite)
    config = replace(config, sets=tuple(replace(s, unrelated=()) for s in config.sets))
    config = replace(config, sets=tuple(s for s in config.sets if s.query_choice))
    if args.cache is not None:
        args.cache.mkdir(parents=True, exist_ok=True)
    (method,) = encoder_methods([args.encoder])
    sets = read_sets(config, data_folder(args.data), progress)
    vectors = suite_vectors(config, sets, [method], cache=args.cache, progress=progress)
    methods = candidates()
    tasks: list[QueryTask] = []
    for suite_set in sets:
        name = suite_set.config.name
        for task in suite_set.tasks:
            progress(len(tasks), len(tasks) + 1, f"{name}: {task.name}")
            scored = _task_scores(task, vectors[name][method.name], config, methods)
            tasks.append(
                {
                    "set": name,
                    "task": task.name,
                    "queries": len(task.queries),
                    "candidates": scored,
                }
            )
    choice = choose_query({(t["set"], t["task"]): _cells(t) for t in tasks})
    result: QueryResult = {
        "suite": args.suite.name,
        "encoder": f"{method.name} {method.about['version']}",
        "config_hash": method.about["config_hash"],
        "tolerance": TOLERANCE,
        "tasks": tasks,
        "means": {name: score.mean for name, score in choice.scores.items()},
        "worst": {name: score.worst for name, score in choice.scores.items()},
        "chosen": choice.chosen,
        "left_out": choice.left_out,
        "cost": choice.cost,
    }
    if args.card is not None:
        update_card(args.card, SECTION, describe(result))
    return result


def describe(result: Mapping[str, Any]) -> str:
    """Table of the candidates, and the choice."""
    tasks: list[QueryTask] = result["tasks"]
    chosen = str(result["chosen"])
    heads = ["query", *(f"{t['set']}: {t['task']}" for t in tasks), "mean", "largest loss"]
    rows = [
        [
            f"**{name}**" if name == chosen else name,
            *(_cell(task["candidates"][name]) for task in tasks),
            f"{result['means'][name]:.3f}",
            f"{result['worst'][name]:.3f}",
        ]
        for name in result["means"]
    ]
    left_out = "; ".join(
        f"without {name}: {best}" for name, (best, _) in result["left_out"].items()
    )
    gains = "; ".join(
        f"{task['set']}: {task['task']} {_gain(task['candidates'][chosen])}" for task in tasks
    )
    return (
        f"{result['encoder']}; mAP@10, behind the stroke with the gallery in the stains of other"
        f" patients. The loss is against the best query on a task.\n\n{markdown_table(heads, rows)}"
        f"\n\nChosen: {chosen}. Its gain over the search by distance, with the 95 % interval:"
        f" {gains}.\n\nWhere the choice is made without the set that it is measured on, the mean is"
        f" {result['cost']:.3f} smaller. Chosen {left_out}."
    )


def _task_scores(
    task: SuiteTask, vectors: SetVectors, config: SuiteConfig, methods: Mapping[str, QueryMethod]
) -> dict[str, CandidateScores]:
    labels = [query.label for query in task.queries]
    groups = [query.group for query in task.queries]

    def precisions(method: QueryMethod) -> dict[str, ArrayF64]:
        """(Q,) of each condition."""
        clean = query_precisions(task, vectors.clean, vectors.clean, config.k, method)
        draws = [
            query_precisions(task, vectors.clean, swapped, config.k, method)
            for swapped in vectors.swapped
        ]
        return {AS_IS: clean} | ({SWAPPED: np.mean(draws, axis=0)} if draws else {})

    base: ArrayF64 | None = None
    out: dict[str, CandidateScores] = {}
    for name, method in methods.items():
        conditions = precisions(method)
        mean = np.mean(list(conditions.values()), axis=0)
        base = mean if base is None else base
        gain = np.asarray(mean - base, np.float64)
        drawn = macro_bootstrap(gain, labels, groups, repeats=config.bootstrap, seed=config.seed)
        out[name] = {
            "as_is": macro_mean(conditions[AS_IS], labels),
            "swapped": macro_mean(conditions[SWAPPED], labels) if SWAPPED in conditions else None,
            "gain": macro_mean(gain, labels),
            "interval": interval_of(drawn),
        }
    return out


def _cells(task: QueryTask) -> dict[str, list[float]]:
    return {
        name: [score for score in (s["as_is"], s["swapped"]) if score is not None]
        for name, s in task["candidates"].items()
    }


def _cell(scores: CandidateScores) -> str:
    swapped = "" if scores["swapped"] is None else f" / {scores['swapped']:.3f}"
    return f"{scores['as_is']:.3f}{swapped}"


def _gain(scores: CandidateScores) -> str:
    low, high = scores["interval"]
    return f"{scores['gain']:+.3f} ({low:+.3f} to {high:+.3f})"
