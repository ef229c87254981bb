"""``python -m ml evaluate arrangement``: graph networks against the mean on large regions.

All encoders use the patches of one encoder without a graph part, whose features are computed once.
The rule by which an architecture is chosen is in ``suite/arrangement.toml``.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.common.data import data_folder
from ml.evaluation.retrieval.metrics import macro_bootstrap, macro_mean
from ml.evaluation.retrieval.suite.arrangement import collages_of
from ml.evaluation.retrieval.suite.config import SHIPPED, SetConfig, SuiteConfig, read_suite
from ml.evaluation.retrieval.suite.run import read_sets
from ml.evaluation.retrieval.suite.scores import chance, interval_of, query_precisions
from ml.evaluation.retrieval.suite.sets import SuiteSet, Task
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi.embed import RoiEncoder
from ml.roi.graph import RoiGraph
from ml.roi.load import load_graph_encoder
from ml.training.roi.arrangement.collages import GRID
from ml.training.roi.arrangement.config import ArrangementConfig
from ml.training.roi.arrangement.regions import read_graphs, validation_blocks, write_graphs
from ml.training.roi.arrangement.views import rearranged_graph
from ml.types import ArrayF32, ArrayF64, Progress

SUITE = "arrangement.toml"
VALIDATION = "validation"
"""Set of collages of training patients that were kept from training."""
COPIES = 4
"""Rearrangements of the vertices of a region."""
ROUNDING = 1e-6
"""Distances of unit vectors (float32) that differ by less are equal: sums depend on their order."""
SEED_MARK = "-"
"""Separator of the architecture and the seed in the name of a weights file."""

Interval = tuple[float, float]


class Gain(TypedDict):
    """Score of an architecture, its gain over the mean, and the 95 % interval of the gain."""

    score: float
    gain: float
    interval: Interval


class TaskGains(TypedDict):
    """One task: number of queries, scores of chance and of the mean, gains by architecture."""

    set: str
    task: str
    queries: int
    groups: int
    chance: float
    mean: float
    architectures: dict[str, Gain]


class ArrangementResult(TypedDict):
    """Result of ``run``.

    Attributes:
        seeds: Runs of each architecture.
        weights: Learned length of the context part of each run.
        tasks: The tasks of ``arrangement.toml``; validation and today's suite by themselves.
        overall: Mean over the sets of ``arrangement.toml``.
        pairs: Of the tasks again, how often a query is nearer to its region than to a copy with the
            same vertices rearranged, less that of the mean, which is one half.
        suite: Change of the mean margin in ``suite.toml`` without stain swaps; empty if unused.
    """

    encoder: str
    seeds: dict[str, int]
    weights: dict[str, list[float]]
    tasks: list[TaskGains]
    overall: dict[str, Gain]
    pairs: list[TaskGains]
    overall_pairs: dict[str, Gain]
    validation: dict[str, Gain]
    suite: dict[str, Gain]
    chosen: str


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """Average precision of each query of a task: of the mean, and of each architecture."""

    task: TaskGains
    gains: dict[str, ArrayF64]
    draws: dict[str, ArrayF64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate arrangement``."""
    parser.add_argument("runs", type=Path, help="folder of ARCHITECTURE-SEED.safetensors")
    parser.add_argument("--encoder", default="default", help="the encoder without a graph part")
    parser.add_argument("--data", type=Path, help="by default TESSERA_DATA")
    parser.add_argument("--cache", type=Path, required=True, help="folder of patch features")
    parser.add_argument(
        "--today", action="store_true", help="also the change in suite.toml, without stain swaps"
    )
    parser.add_argument("--card", type=Path, help="card whose table 'arrangement' is replaced")


def run(args: argparse.Namespace, progress: Progress) -> ArrangementResult:
    """Score every run and the mean on all tasks.

    Raises:
        MlError: data or weights that cannot be scored.
    """
    data = data_folder(args.data)
    base = load_graph_encoder(str(args.encoder))
    encoders = read_runs(args.runs)
    args.cache.mkdir(parents=True, exist_ok=True)
    config = read_suite(Path(SUITE))
    today = read_suite(SHIPPED)
    today = replace(today, sets=tuple(entry for entry in today.sets if entry.choice))

    pairs: list[ScoredTask] = []

    def scored(sets: Sequence[SuiteSet], *, with_pairs: bool = False) -> list[ScoredTask]:
        set_tasks = []
        for suite_set in sets:
            graphs = set_graphs(suite_set, base, args.cache, progress)
            mean = _vectors(base, graphs)
            run_vectors = {
                name: [_vectors(encoder, graphs) for encoder in runs]
                for name, runs in encoders.items()
            }
            set_tasks += [
                task_gains(suite_set, task, mean, run_vectors, config) for task in suite_set.tasks
            ]
            if with_pairs:
                for task in suite_set.tasks:
                    shares = {
                        name: [pair_shares(task, encoder, graphs) for encoder in runs]
                        for name, runs in encoders.items()
                    }
                    pairs.append(pair_gains(suite_set, task, shares, config))
        return set_tasks

    entry = SetConfig(name=VALIDATION, kind="collages", path=VALIDATION, rearranged=1)
    training = ArrangementConfig()
    validation_set = collages_of(entry, validation_blocks(training, data, progress))
    validation = gains_over_sets(scored([validation_set]))
    tasks = scored(read_sets(config, data, progress), with_pairs=True)
    result: ArrangementResult = {
        "encoder": f"{base.name} {base.version}",
        "seeds": {name: len(run_vectors) for name, run_vectors in encoders.items()},
        "weights": {
            name: [encoder.config.network.context_weight for encoder in run_vectors]
            for name, run_vectors in encoders.items()
        },
        "tasks": [scored_task.task for scored_task in tasks],
        "overall": gains_over_sets(tasks),
        "pairs": [pair.task for pair in pairs],
        "overall_pairs": gains_over_sets(pairs),
        "validation": validation,
        "suite": gains_over_sets(scored(read_sets(today, data, progress))) if args.today else {},
        "chosen": max(validation, key=lambda name: validation[name]["gain"]),
    }
    if args.card is not None:
        update_card(args.card, "arrangement", describe(result))
    return result


def describe(result: ArrangementResult) -> str:
    """Markdown table of the gains."""
    names = list(result["overall"])

    def task_rows(tasks: Sequence[TaskGains], suffix: str = "") -> list[list[str]]:
        return [
            [
                f"{task['set']}: {task['task']}{suffix}",
                str(task["queries"]),
                f"{task['chance']:.3f}",
                f"{task['mean']:.3f}",
                *(_cell(task["architectures"][name]) for name in names),
            ]
            for task in tasks
        ]

    def gain_row(title: str, gains: Mapping[str, Gain]) -> list[str]:
        return [title, "", "", "", *(_gain(gains[name]) for name in names)]

    rows = [
        *task_rows(result["tasks"]),
        gain_row("all of these, gain", result["overall"]),
        *task_rows(result["pairs"], ", pairs"),
        gain_row("all pairs, gain", result["overall_pairs"]),
        gain_row("kept training patients, gain", result["validation"]),
    ]
    if result["suite"]:
        rows.append(gain_row("today's suite without stain swaps, change", result["suite"]))
    heads = ["task", "queries", "chance", "mean", *names]
    seeds = ", ".join(f"{name} {count}" for name, count in result["seeds"].items())
    return "\n".join(
        [
            f"Patches of {result['encoder']}; mAP@10, and in brackets the gain over the mean of the"
            f" same vertices with its 95 % interval. Means over seeds ({seeds}). Pairs: how often a"
            " query is nearer to its region than to a copy with the same vertices rearranged.",
            "",
            markdown_table(heads, rows),
            "",
            f"Chosen by the kept training patients: {result['chosen']}.",
        ]
    )


def set_graphs(
    suite_set: SuiteSet, encoder: RoiEncoder, cache: Path, progress: Progress
) -> tuple[RoiGraph, ...]:
    """Read or compute the graph of each item of a set, with raw features."""
    digest = hashlib.sha256(encoder.config_hash.encode())
    for item in suite_set.items:
        digest.update(f"\n{item.key}".encode())
    name = suite_set.config.name.replace(" ", "-")
    path = cache / f"graphs-{name}-{digest.hexdigest()[:16]}.npz"
    if not path.is_file():
        graphs = []
        for number, item in enumerate(suite_set.items, 1):
            region = item.read()
            graphs.append(encoder.image_graph((region.pixels, region.polygon, region.mpp)))
            progress(number, len(suite_set.items), f"{suite_set.config.name}: patches")
        write_graphs(path, tuple(graphs))
    return read_graphs(path, edge_px=encoder.config.edge_px)


def read_runs(folder: Path) -> dict[str, list[RoiEncoder]]:
    """Read the encoders of a folder by architecture.

    Raises:
        BadInputError: there is none.
    """
    runs: dict[str, list[RoiEncoder]] = defaultdict(list)
    for path in sorted(folder.glob(f"*{SEED_MARK}*.safetensors")):
        runs[path.stem.rpartition(SEED_MARK)[0]].append(load_graph_encoder(str(path)))
    if not runs:
        raise BadInputError(f"{folder.name}: no ARCHITECTURE{SEED_MARK}SEED.safetensors in it")
    return dict(runs)


def _vectors(encoder: RoiEncoder, graphs: Sequence[RoiGraph]) -> ArrayF32:
    return np.stack([encoder.embed_graph(graph) for graph in graphs])


def task_gains(
    suite_set: SuiteSet,
    task: Task,
    mean_vectors: ArrayF32,
    run_vectors: Mapping[str, Sequence[ArrayF32]],
    config: SuiteConfig,
) -> ScoredTask:
    """Score the mean and the runs of each architecture on a task.

    Args:
        mean_vectors: (N, D) of the items of the set.
        run_vectors: (N, D') of the items by architecture, one for each run.
    """

    def precisions(vectors: ArrayF32) -> ArrayF64:
        return query_precisions(task, vectors, vectors, config.k)

    run_precisions = {
        name: [precisions(vectors) for vectors in runs] for name, runs in run_vectors.items()
    }
    return _gains_of(suite_set, task, precisions(mean_vectors), run_precisions, config)


def pair_gains(
    suite_set: SuiteSet,
    task: Task,
    shares: Mapping[str, Sequence[ArrayF64]],
    config: SuiteConfig,
) -> ScoredTask:
    """Score how often a query is nearer to its region than to its vertices rearranged.

    Args:
        shares: (Q,) by architecture, one for each run, see ``pair_shares``.
    """
    half = np.full(len(task.queries), 0.5)
    scored = _gains_of(suite_set, task, half, shares, config)
    scored.task["chance"] = 0.5
    return scored


def pair_shares(task: Task, encoder: RoiEncoder, graphs: Sequence[RoiGraph]) -> ArrayF64:
    """Share (Q,) of copies with the same vertices rearranged that are further than their region.

    The mean over right answers and ``COPIES`` rearrangements; equal distances count as one half.
    """
    edge_px = encoder.config.edge_px
    vectors: dict[int, tuple[ArrayF32, ArrayF32]] = {}

    def region_and_copies(item: int) -> tuple[ArrayF32, ArrayF32]:
        if item not in vectors:
            copies = [
                rearranged_graph(
                    graphs[item], np.random.default_rng((item, copy)), grid=GRID, edge_px=edge_px
                )
                for copy in range(COPIES)
            ]
            vectors[item] = (encoder.embed_graph(graphs[item]), _vectors(encoder, copies))
        return vectors[item]

    shares = []
    for query in task.queries:
        query_vector = encoder.embed_graph(graphs[query.item])
        wins = []
        for item in query.gallery[query.relevant].tolist():
            region, copies = region_and_copies(item)
            near = np.linalg.norm(query_vector - region)
            distances = np.linalg.norm(query_vector - copies, axis=1)
            equal = np.isclose(distances, near, rtol=0, atol=ROUNDING)
            wins.append(np.mean(np.where(equal, 0.5, distances > near)))
        shares.append(float(np.mean(wins)))
    return np.array(shares)


def _gains_of(
    suite_set: SuiteSet,
    task: Task,
    mean: ArrayF64,
    runs: Mapping[str, Sequence[ArrayF64]],
    config: SuiteConfig,
) -> ScoredTask:
    """Scores and gains from values (Q,) of the mean, and of each run by architecture."""
    labels = [query.label for query in task.queries]
    groups = [query.group for query in task.queries]
    gains = {
        name: np.asarray(np.mean(precisions_of_runs, axis=0) - mean, np.float64)
        for name, precisions_of_runs in runs.items()
    }
    draws = {
        name: macro_bootstrap(gain, labels, groups, repeats=config.bootstrap, seed=config.seed)
        for name, gain in gains.items()
    }
    about: TaskGains = {
        "set": suite_set.config.name,
        "task": task.name,
        "queries": len(labels),
        "groups": len(set(groups)),
        "chance": chance(task, config),
        "mean": macro_mean(mean, labels),
        "architectures": {
            name: {
                "score": macro_mean(mean + gain, labels),
                "gain": macro_mean(gain, labels),
                "interval": interval_of(draws[name]),
            }
            for name, gain in gains.items()
        },
    }
    return ScoredTask(about, gains, draws)


def gains_over_sets(tasks: Sequence[ScoredTask]) -> dict[str, Gain]:
    """Mean over the sets of the means over their tasks; sets are resampled independently."""
    by_set: dict[str, list[ScoredTask]] = defaultdict(list)
    for scored in tasks:
        by_set[scored.task["set"]].append(scored)
    result: dict[str, Gain] = {}
    for name in tasks[0].gains:
        means = [
            np.mean(
                [
                    [scored.task["architectures"][name][key] for key in ("score", "gain")]
                    for scored in tasks_of_set
                ],
                axis=0,
            )
            for tasks_of_set in by_set.values()
        ]
        rng = np.random.default_rng(0)
        # The order of the draws is the same for tasks of a set, and another for each set.
        drawn = [
            rng.permutation(np.mean([scored.draws[name] for scored in tasks_of_set], axis=0))
            for tasks_of_set in by_set.values()
        ]
        score, gain = np.mean(means, axis=0).tolist()
        result[name] = {
            "score": score,
            "gain": gain,
            "interval": interval_of(np.asarray(np.mean(drawn, axis=0), np.float64)),
        }
    return result


def _gain(gain: Gain) -> str:
    low, high = gain["interval"]
    return f"{gain['gain']:+.3f} ({low:+.3f} to {high:+.3f})"


def _cell(gain: Gain) -> str:
    low, high = gain["interval"]
    return f"{gain['score']:.3f} ({gain['gain']:+.3f}, {low:+.3f} to {high:+.3f})"
