"""Scores of one method on one task: mAP over classes, intervals over patients, chance, pull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.closeness import CalledClose, drawn, is_close
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import (
    RANDOM_RUNS,
    average_precision_at_k,
    macro_bootstrap,
    macro_mean,
)
from ml.evaluation.retrieval.suite.config import SuiteConfig
from ml.evaluation.retrieval.suite.query_methods import BY_DISTANCE, QueryMethod, distances_of
from ml.evaluation.retrieval.suite.sets import Task, same_label
from ml.evaluation.retrieval.suite.vectors import SetVectors
from ml.index.ranking.calibration import Calibration
from ml.types import ArrayBool, ArrayF32, ArrayF64

_LEVEL = 0.95  # coverage of the intervals

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scores:
    """One cell of the table: a task under one condition.

    Attributes:
        score: mAP@k, the mean over classes.
        interval: 95 %, over patients.
        by_label: of each class.
        mean: over queries, as ``evaluate retrieval`` gives it.
        draws: score of each draw of the swap; empty without a swap.
    """

    score: float
    interval: Interval
    by_label: dict[str, float]
    mean: float
    draws: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteTaskScores:
    """Scores on a task, the same with a recoloured gallery, and the loss in percent."""

    as_is: Scores
    swapped: Scores | None
    cost_percent: float | None


def task_scores(
    task: Task, vectors: SetVectors, config: SuiteConfig, query_method: QueryMethod = BY_DISTANCE
) -> SuiteTaskScores:
    """Score a method on a task."""
    clean = query_precisions(task, vectors.clean, vectors.clean, config.k, query_method)
    as_is = _scores(task, [clean], config)
    if not vectors.swapped:
        return SuiteTaskScores(as_is, None, None)
    draws = [
        query_precisions(task, vectors.clean, other, config.k, query_method)
        for other in vectors.swapped
    ]
    swapped = _scores(task, draws, config)
    lost = 100 * (as_is.score - swapped.score) / as_is.score if as_is.score else 0.0
    return SuiteTaskScores(as_is, swapped, lost)


def query_precisions(
    task: Task,
    queries: ArrayF32,
    gallery: ArrayF32,
    k: int,
    query_method: QueryMethod = BY_DISTANCE,
) -> ArrayF64:
    """(Q,) average precision at k of each query of a task.

    Args:
        queries, gallery: (N, D) vectors of all items, as queries and as members of galleries.
    """
    ask = distances_of(task, queries, gallery, query_method)
    return np.array([_precision(query.relevant, ask(query), k) for query in task.queries])


def called_close(
    task: Task, vectors: ArrayF32, unrelated: ArrayF32, calibration: Calibration
) -> CalledClose:
    """Shares of close nearest right answers, and of close nearest unrelated regions.

    Args:
        vectors: (N, D) of all items.
        unrelated: (M, D) of regions unrelated to every item.
    """
    related, wrong = [], []
    for number, query in enumerate(task.queries):
        query_vector, count = vectors[query.item], len(query.gallery)
        related.append(
            is_close(query_vector, vectors[query.gallery[query.relevant]], count, calibration)
        )
        gallery = drawn(unrelated, count, number)
        wrong.append(is_close(query_vector, gallery, len(gallery), calibration))
    return CalledClose(float(np.mean(related)), float(np.mean(wrong)))


def chance(task: Task, config: SuiteConfig) -> float:
    """Mean score of random rankings."""
    rng = np.random.default_rng(config.seed)
    labels = [query.label for query in task.queries]
    runs = [
        [_precision(q.relevant, rng.random(len(q.gallery)), config.k) for q in task.queries]
        for _ in range(RANDOM_RUNS)
    ]
    return macro_mean(np.mean(runs, axis=0), labels)


def patient_pull(records: Sequence[RoiRecord], vectors: ArrayF32) -> float:
    """Share of nearest regions of the same patient, among patients with several regions."""
    patients = np.array([record.patient for record in records])
    distance = cdist(vectors, vectors)
    np.fill_diagonal(distance, np.inf)
    is_same_patient = patients[distance.argmin(axis=1)] == patients
    return float(is_same_patient[_with_others(patients)].mean())


def labels_alone_pull(records: Sequence[RoiRecord]) -> float:
    """``patient_pull`` expected of a ranking by labels only."""
    patients = np.array([record.patient for record in records])
    counted = _with_others(patients)
    return float(
        np.mean(
            [
                (patients[same] == patients[item]).mean()
                for item, same in same_label(records).items()
                if counted[item]
            ]
        )
    )


def interval_of(draws: ArrayF64) -> Interval:
    """95 % interval of bootstrap draws."""
    low, high = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _scores(task: Task, runs: Sequence[ArrayF64], config: SuiteConfig) -> Scores:
    labels = [query.label for query in task.queries]
    groups = [query.group for query in task.queries]
    mean = np.mean(runs, axis=0)
    drawn = macro_bootstrap(mean, labels, groups, repeats=config.bootstrap, seed=config.seed)
    return Scores(
        score=macro_mean(mean, labels),
        interval=interval_of(drawn),
        by_label=_means_by_label(mean, labels),
        mean=float(mean.mean()),
        draws=tuple(macro_mean(run, labels) for run in runs) if len(runs) > 1 else (),
    )


def _precision(relevant: ArrayBool, distance: ArrayF64, k: int) -> float:
    order = np.argsort(distance, kind="stable")
    return average_precision_at_k(relevant[order], k=k, n_relevant=int(relevant.sum()))


def _means_by_label(values: ArrayF64, labels: Sequence[str]) -> dict[str, float]:
    names = np.asarray(labels)
    return {str(name): float(values[names == name].mean()) for name in np.unique(names)}


def _with_others(patients: npt.NDArray[np.str_]) -> ArrayBool:
    """(N,) bool: whether the patient of a region has another one."""
    _, index, counts = np.unique(patients, return_inverse=True, return_counts=True)
    return np.asarray(counts[index] > 1)
