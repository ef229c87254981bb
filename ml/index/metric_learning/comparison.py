"""Evaluation of learned vectors against the current ones, on test patients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.exact import squared_distances
from ml.index.metric_learning.dataset import AGREEMENT, MAP, RegionDataset
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

K = 10
"""Cut-off rank of the measures: the results that a page shows without scrolling."""
EXAMPLE_RESULTS = 5  # a row of thumbnails
EXAMPLES_EACH = 2  # of the largest gains, the largest losses and the middle
RESAMPLES = 2_000  # bootstrap samples of patients: the interval is stable to the shown digits
LEVEL = (2.5, 97.5)  # per cent: the ends of an interval of 95 %
_BLOCK = 256  # queries per block of distances: 16 MB at most
_EPSILON = 1e-9  # smaller changes count as none

PRECISION, FIRST = "precision_at_10", "first_right"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One measure, old and new: mean over patients of the means of their regions.

    Attributes:
        name: ``map_at_10``, ``precision_at_10``, ``first_right`` (the nearest has the label) or
            ``agreement`` (with the judgements).
        gain, low, high: New minus old, and its 95 % interval by a bootstrap over patients.
        regions, patients: Number of queries and of their patients.
    """

    name: str
    regions: int
    patients: int
    old: float
    new: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Average precision of the test regions of a label, and how many improved or got worse."""

    label: str
    regions: int
    patients: int
    old: float
    new: float
    better: int
    worse: int
    same: int


@dataclass(frozen=True, slots=True)
class Example:
    """Results of one query with the old and new vectors, by row, and its gain."""

    row: int
    gain: float
    old: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Effect of the learned vectors on held-out patients.

    Attributes:
        measure: Name of the decisive measure.
        is_better: The confidence interval of its gain is above zero.
        test_patients: Number of test patients.
    """

    measure: str
    is_better: bool
    test_patients: int
    measures: tuple[FigureChange, ...]
    labels: tuple[LabelChange, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class _QueryScores:
    """Rows and scores of Q queries; a score is NaN if no other patient has the label."""

    rows: ArrayI64
    scores: dict[str, ArrayF64]
    nearest: ArrayI64  # (Q, EXAMPLE_RESULTS) rows, -1 where there are no more


def compare(
    dataset: RegionDataset,
    is_test: ArrayBool,
    learned: ArrayF32,
    *,
    before: ArrayF32 | None = None,
    measure: str = MAP,
    progress: Progress | None = None,
) -> Comparison:
    """Search with each test region among the regions of all other patients.

    Args:
        is_test: (N,) bool, regions of the test patients.
        learned: (N, D) float32, learned vectors of the regions.
        before: (N, E) float32, vectors in use now; None for those of ``dataset``.
        measure: Name of the decisive measure.
        progress: Called twice; may raise to stop.
    """
    report = progress or (lambda done, total, phase: None)
    scores = []
    for number, vectors in enumerate((dataset.vectors if before is None else before, learned)):
        report(number, 2, "comparing")
        scores.append(_score_queries(dataset, is_test, vectors))
    old, new = scores
    patients = dataset.patients[old.rows]
    names = [MAP, PRECISION, FIRST, AGREEMENT]
    measures = [_measure(name, old.scores[name], new.scores[name], patients) for name in names]
    measured = tuple(comparison for comparison in measures if comparison is not None)
    gain = new.scores[measure] - old.scores[measure]
    return Comparison(
        measure,
        is_better=any(comparison.name == measure and comparison.low > 0 for comparison in measured),
        test_patients=len(np.unique(dataset.patients[is_test])),
        measures=measured,
        labels=_label_changes(dataset, old, new),
        examples=_examples(dataset, old, new, gain),
    )


def _score_queries(dataset: RegionDataset, is_test: ArrayBool, vectors: ArrayF32) -> _QueryScores:
    exact = vectors.astype(np.float64)
    rows = np.flatnonzero(is_test)
    scores = {name: np.full(len(rows), np.nan) for name in (MAP, PRECISION, FIRST)}
    nearest = np.full((len(rows), EXAMPLE_RESULTS), -1, np.int64)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        distance = squared_distances(exact[block], exact)
        distance[dataset.patients[block][:, None] == dataset.patients[None]] = np.inf
        order = np.argsort(distance, axis=1, kind="stable")[:, : max(K, EXAMPLE_RESULTS)]
        for at, row, first in zip(range(start, start + len(block)), block, order, strict=True):
            ranked = first[np.isfinite(distance[at - start, first])]
            nearest[at, : len(ranked[:EXAMPLE_RESULTS])] = ranked[:EXAMPLE_RESULTS]
            for name, value in _scores(dataset, int(row), ranked[:K]).items():
                scores[name][at] = value
    scores[AGREEMENT] = dataset.judged.agreement(exact, is_test)[rows]
    return _QueryScores(rows, scores, nearest)


def _scores(dataset: RegionDataset, row: int, ranked: ArrayI64) -> dict[str, float]:
    """Scores of one query by its label; empty without a label or if no other patient has it."""
    label = dataset.labels[row]
    relevant = (dataset.labels == label) & (dataset.patients != dataset.patients[row])
    reachable = min(int(relevant.sum()), K)
    if not label or not reachable:
        return {}
    right = dataset.labels[ranked] == label
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return {
        MAP: float(precision[right].sum() / reachable),
        PRECISION: float(right.mean()),
        FIRST: float(right[0]),
    }


def _measure(name: str, old: ArrayF64, new: ArrayF64, patients: np.ndarray) -> FigureChange | None:
    is_measured = np.isfinite(old) & np.isfinite(new)
    if not is_measured.any():
        return None
    _, index = np.unique(patients[is_measured], return_inverse=True)
    counts = np.bincount(index)
    before, after = (np.bincount(index, values[is_measured]) / counts for values in (old, new))
    gain = after - before
    samples = np.random.default_rng(0).integers(0, len(gain), (RESAMPLES, len(gain)))
    low, high = np.percentile(gain[samples].mean(axis=1), LEVEL)
    return FigureChange(
        name,
        regions=int(is_measured.sum()),
        patients=len(gain),
        old=float(before.mean()),
        new=float(after.mean()),
        gain=float(gain.mean()),
        low=float(low),
        high=float(high),
    )


def _label_changes(
    dataset: RegionDataset, old: _QueryScores, new: _QueryScores
) -> tuple[LabelChange, ...]:
    labels = dataset.labels[old.rows]
    before, after = old.scores[MAP], new.scores[MAP]
    changes = []
    for label in np.unique(labels[np.isfinite(before)]):
        mask = (labels == label) & np.isfinite(before)
        gain = after[mask] - before[mask]
        better, worse = int((gain > _EPSILON).sum()), int((gain < -_EPSILON).sum())
        changes.append(
            LabelChange(
                str(label),
                regions=len(gain),
                patients=len(np.unique(dataset.patients[old.rows[mask]])),
                old=float(before[mask].mean()),
                new=float(after[mask].mean()),
                better=better,
                worse=worse,
                same=len(gain) - better - worse,
            )
        )
    return tuple(changes)


def _examples(
    dataset: RegionDataset, old: _QueryScores, new: _QueryScores, gain: ArrayF64
) -> tuple[Example, ...]:
    """The largest gains, the largest losses and the middle, each patient at most once."""
    measured_rows = np.flatnonzero(np.isfinite(gain))
    order = measured_rows[np.argsort(-gain[measured_rows], kind="stable")]
    middle = order[np.argsort(np.abs(np.arange(len(order)) - len(order) / 2), kind="stable")]
    chosen: list[int] = []
    used_patients: set[str] = set()
    for ordering in (order, order[::-1], middle):
        limit = len(chosen) + EXAMPLES_EACH
        for at in ordering.tolist():
            patient = str(dataset.patients[old.rows[at]])
            if len(chosen) < limit and patient not in used_patients:
                used_patients.add(patient)
                chosen.append(at)
    return tuple(
        Example(
            int(old.rows[at]),
            float(gain[at]),
            *(tuple(scores.nearest[at][scores.nearest[at] >= 0].tolist()) for scores in (old, new)),
        )
        for at in sorted(chosen, key=lambda at: -gain[at])
    )
