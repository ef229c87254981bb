"""Evaluation of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Required, TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.closeness import CalledClose
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.arrangement import collage_set, slide_set
from ml.evaluation.retrieval.suite.cells import section_set
from ml.evaluation.retrieval.suite.choice import Cell, SuiteChoice, choose, margins_of
from ml.evaluation.retrieval.suite.config import SetConfig, SuiteConfig
from ml.evaluation.retrieval.suite.methods import MethodAbout, SuiteMethod
from ml.evaluation.retrieval.suite.query_methods import BY_DISTANCE
from ml.evaluation.retrieval.suite.scores import (
    SuiteTaskScores,
    called_close,
    chance,
    labels_alone_pull,
    patient_pull,
    task_scores,
)
from ml.evaluation.retrieval.suite.sets import SuiteSet, Task, labelled_set
from ml.evaluation.retrieval.suite.swap import (
    Recolouring,
    Stained,
    drawn_donors,
    measure_stains,
    recolourings,
)
from ml.evaluation.retrieval.suite.vectors import SetVectors, set_vectors
from ml.index.ranking.calibration import calibration_of
from ml.types import Progress

AS_IS, SWAPPED = "as_is", "swapped"


class Pull(TypedDict):
    """Shares of nearest regions of the same patient: by labels only, and by each method."""

    labels_alone: float
    methods: dict[str, float]


class TaskResult(TypedDict):
    """A task: queries of each class, those without a right answer, and the scores by method.

    Attributes:
        called_close: of encoders that have a calibration, where the set names unrelated ones.
    """

    classes: dict[str, int]
    unscored: int
    chance: float
    methods: dict[str, SuiteTaskScores]
    called_close: dict[str, CalledClose]


class SetResult(TypedDict):
    """A set: its size, its tasks by name, the pull of patients, seconds per item by method."""

    items: int
    patients: int
    choice: bool
    tasks: dict[str, TaskResult]
    patient_pull: Pull | None
    seconds: dict[str, float]


class MethodResult(MethodAbout):
    """A method, and whether it is a baseline."""

    baseline: Required[bool]


class SuiteResult(TypedDict):
    """A suite: its file, the methods and the sets by name, and what the rule chooses."""

    options: SuiteConfig
    methods: dict[str, MethodResult]
    sets: dict[str, SetResult]
    choice: SuiteChoice | None


def read_sets(config: SuiteConfig, data: Path, progress: Progress) -> tuple[SuiteSet, ...]:
    """Read the sets of a suite; of their images only sections are decoded.

    Raises:
        BadInputError: a set is not there or cannot be scored; the set is named.
    """
    out = []
    for entry in config.sets:
        try:
            out.append(_read_set(entry, data, progress))
        except BadInputError as error:
            raise BadInputError(f"{entry.name}: {error}") from error
    return tuple(out)


def run_suite(
    config: SuiteConfig,
    sets: Sequence[SuiteSet],
    methods: Sequence[SuiteMethod],
    *,
    cache: Path | None,
    progress: Progress,
) -> SuiteResult:
    """Score every method on every set.

    Args:
        methods: encoders and baselines.
        cache: folder for vectors, see ``set_vectors``.
    Returns:
        ``options``, ``methods``, ``sets`` by name, and the ``choice`` among the encoders.
    """
    vectors = suite_vectors(config, sets, methods, cache=cache, progress=progress)
    results = {s.config.name: _set_result(s, vectors, methods, config) for s in sets}
    return {
        "options": config,
        "methods": {m.name: {"baseline": m.baseline, **m.about} for m in methods},
        "sets": results,
        "choice": _choice(results, methods),
    }


def suite_vectors(
    config: SuiteConfig,
    sets: Sequence[SuiteSet],
    methods: Sequence[SuiteMethod],
    *,
    cache: Path | None,
    progress: Progress,
) -> dict[str, dict[str, SetVectors]]:
    """Vectors of each method by set and name, with those of the stain swaps; see ``run_suite``."""
    read = [_read_regions(s, progress) for s in sets]
    stained = [
        measure_stains(s.items, [region.pixels for region in regions]) if config.draws else ()
        for s, regions in zip(sets, read, strict=True)
    ]
    donors = [
        unit for s, units in zip(sets, stained, strict=True) if s.config.choice for unit in units
    ]
    vectors: dict[str, dict[str, SetVectors]] = {}
    for s, regions, units in zip(sets, read, stained, strict=True):
        swaps = _swaps(s, units, donors, config)
        vectors[s.config.name] = set_vectors(s, regions, swaps, methods, cache, progress)
    return vectors


def _read_set(entry: SetConfig, data: Path, progress: Progress) -> SuiteSet:
    if entry.kind == "sections":
        return section_set(entry, data, progress)
    if entry.kind == "collages":
        return collage_set(entry, data, progress)
    if entry.kind == "slides":
        return slide_set(entry, data, progress)
    return labelled_set(entry, data)


def _read_regions(suite_set: SuiteSet, progress: Progress) -> list[RegionImage]:
    """Read all regions of a set, so that each image is decoded once."""
    out = []
    for number, item in enumerate(suite_set.items, 1):
        out.append(item.read())
        progress(number, len(suite_set.items), f"{suite_set.config.name}: reading")
    return out


def _swaps(
    suite_set: SuiteSet, stains: Sequence[Stained], donors: Sequence[Stained], config: SuiteConfig
) -> list[dict[str, Recolouring]]:
    if not suite_set.config.swap:
        return []
    return [
        recolourings(stains, drawn_donors(stains, donors, draw=draw, seed=config.seed))
        for draw in range(1, config.draws + 1)
    ]


def _set_result(
    suite_set: SuiteSet,
    all_vectors: dict[str, dict[str, SetVectors]],
    methods: Sequence[SuiteMethod],
    config: SuiteConfig,
) -> SetResult:
    vectors = all_vectors[suite_set.config.name]
    tasks: dict[str, TaskResult] = {}
    for task in suite_set.tasks:
        counts: dict[str, int] = {}
        for query in task.queries:
            counts[query.label] = counts.get(query.label, 0) + 1
        tasks[task.name] = {
            "classes": counts,
            "unscored": task.unscored,
            "chance": chance(task, config),
            "methods": {
                m.name: task_scores(task, vectors[m.name], config, m.query_method) for m in methods
            },
            "called_close": _close(suite_set, task, all_vectors, methods),
        }
    return {
        "items": len(suite_set.items),
        "patients": len({item.patient for item in suite_set.items}),
        "choice": suite_set.config.choice,
        "tasks": tasks,
        "patient_pull": _pull(suite_set, vectors),
        "seconds": {name: v.seconds for name, v in vectors.items()},
    }


def _close(
    suite_set: SuiteSet,
    task: Task,
    vectors: dict[str, dict[str, SetVectors]],
    methods: Sequence[SuiteMethod],
) -> dict[str, CalledClose]:
    """Shares of close hits by plain distance, for each calibrated encoder."""
    names = suite_set.config.unrelated
    close = {}
    for method in methods if names else ():
        calibration = calibration_of(method.about.get("config_hash", ""))
        if calibration is not None and method.query_method == BY_DISTANCE:
            unrelated = np.concatenate([vectors[name][method.name].clean for name in names])
            method_vectors = vectors[suite_set.config.name][method.name].clean
            close[method.name] = called_close(task, method_vectors, unrelated, calibration)
    return close


def _pull(suite_set: SuiteSet, vectors: dict[str, SetVectors]) -> Pull | None:
    """Pull of patients; None for sets without known patients."""
    if not suite_set.records or not suite_set.config.choice:
        return None
    return {
        "labels_alone": labels_alone_pull(suite_set.records),
        "methods": {name: patient_pull(suite_set.records, v.clean) for name, v in vectors.items()},
    }


def _choice(results: dict[str, SetResult], methods: Sequence[SuiteMethod]) -> SuiteChoice | None:
    # Methods that use labels are no candidates: the baselines use none.
    encoders = [m.name for m in methods if not (m.baseline or m.query_method.learn)]
    baselines = [m.name for m in methods if m.baseline]
    cells: dict[Cell, dict[str, float]] = {}
    for name, result in results.items():
        for task, scores in result["tasks"].items() if result["choice"] else ():
            methods_scores = scores["methods"]
            cells[name, task, AS_IS] = {m: s.as_is.score for m, s in methods_scores.items()}
            swapped = {
                m: s.swapped.score for m, s in methods_scores.items() if s.swapped is not None
            }
            if len(swapped) == len(methods_scores):
                cells[name, task, SWAPPED] = swapped
    if not encoders or not baselines or not cells:
        return None
    return choose(margins_of(cells, encoders, baselines))
