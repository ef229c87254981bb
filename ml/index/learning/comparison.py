"""Vectors that are searched by now against learned ones, compared on patients kept aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.exact import squared_distances
from ml.index.learning.material import AGREEMENT, MAP, Material
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

K = 10
"""Nearest that count: what a page of results shows without scrolling."""
SHOWN = 5  # nearest of an example: a row of thumbnails
EXAMPLES_EACH = 2  # of the largest gains, the largest losses and the middle
RESAMPLES = 2_000  # of patients: the interval's ends then vary by less than is shown
LEVEL = (2.5, 97.5)  # per cent: the ends of an interval of 95 %
_BLOCK = 256  # queries whose distances to the archive are held at once: 16 MB at most
_EVEN = 1e-9  # a change below is none

PRECISION, FIRST = "precision_at_10", "first_right"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure, old and new: means over patients of the means of their regions.

    Attributes:
        name: ``map_at_10``, ``precision_at_10``, ``first_right`` (the nearest has the label) or
            ``agreement`` (with what people called alike and unlike).
        gain, low, high: new less old, and its interval of 95 % when patients are drawn again.
        regions, patients: how many were searched with.
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
    """A label's regions kept aside: their average precision, and how many did better or worse."""

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
    """One query beside both answers, by rows of the material. Gain: of the measure that judges."""

    row: int
    gain: float
    old: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the learned vectors do for patients that they were not learned from.

    Attributes:
        judges_by: the measure that the verdict goes by.
        is_better: the interval of its gain lies above zero.
        kept_aside: patients that were not learned from.
    """

    judges_by: str
    is_better: bool
    kept_aside: int
    measures: tuple[FigureChange, ...]
    labels: tuple[LabelChange, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Of each query (Q,): its row and scores, NaN if no other patient has its label."""

    rows: ArrayI64
    scores: dict[str, ArrayF64]
    nearest: ArrayI64  # (Q, SHOWN) rows, -1 where there are no more


def compare(
    material: Material,
    aside: ArrayBool,
    learned: ArrayF32,
    *,
    before: ArrayF32 | None = None,
    judges_by: str = MAP,
    progress: Progress | None = None,
) -> Comparison:
    """Search with each region kept aside among all other patients' regions.

    Args:
        aside: (N,) regions of patients that nothing was learned from.
        learned: (N, D) vectors of the material's regions by what was learned.
        before: (N, E) those that are searched by now; None for the material's own.
        judges_by: the measure that the verdict goes by.
        progress: called twice; may raise to stop.
    """
    told = progress or (lambda done, total, phase: None)
    found = []
    for number, vectors in enumerate((material.vectors if before is None else before, learned)):
        told(number, 2, "comparing")
        found.append(_asked(material, aside, vectors))
    old, new = found
    patients = material.patients[old.rows]
    names = [MAP, PRECISION, FIRST, AGREEMENT]
    measures = [_measure(name, old.scores[name], new.scores[name], patients) for name in names]
    measured = tuple(one for one in measures if one is not None)
    gain = new.scores[judges_by] - old.scores[judges_by]
    return Comparison(
        judges_by,
        is_better=any(one.name == judges_by and one.low > 0 for one in measured),
        kept_aside=len(np.unique(material.patients[aside])),
        measures=measured,
        labels=_by_label(material, old, new),
        examples=_examples(material, old, new, gain),
    )


def _asked(material: Material, aside: ArrayBool, vectors: ArrayF32) -> _Asked:
    exact = vectors.astype(np.float64)
    rows = np.flatnonzero(aside)
    scores = {name: np.full(len(rows), np.nan) for name in (MAP, PRECISION, FIRST)}
    nearest = np.full((len(rows), SHOWN), -1, np.int64)
    for start in range(0, len(rows), _BLOCK):
        own = rows[start : start + _BLOCK]
        distance = squared_distances(exact[own], exact)
        distance[material.patients[own][:, None] == material.patients[None]] = np.inf
        order = np.argsort(distance, axis=1, kind="stable")[:, : max(K, SHOWN)]
        for at, row, first in zip(range(start, start + len(own)), own, order, strict=True):
            ranked = first[np.isfinite(distance[at - start, first])]
            nearest[at, : len(ranked[:SHOWN])] = ranked[:SHOWN]
            for name, value in _scores(material, int(row), ranked[:K]).items():
                scores[name][at] = value
    scores[AGREEMENT] = material.judged.agreement(exact, aside)[rows]
    return _Asked(rows, scores, nearest)


def _scores(material: Material, row: int, ranked: ArrayI64) -> dict[str, float]:
    """Of one query, by its label; nothing where it has none, or no other patient has it."""
    label = material.labels[row]
    others = (material.labels == label) & (material.patients != material.patients[row])
    reachable = min(int(others.sum()), K)
    if not label or not reachable:
        return {}
    right = material.labels[ranked] == label
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return {
        MAP: float(precision[right].sum() / reachable),
        PRECISION: float(right.mean()),
        FIRST: float(right[0]),
    }


def _measure(name: str, old: ArrayF64, new: ArrayF64, patients: np.ndarray) -> FigureChange | None:
    known = np.isfinite(old) & np.isfinite(new)
    if not known.any():
        return None
    _, index = np.unique(patients[known], return_inverse=True)
    counts = np.bincount(index)
    before, after = (np.bincount(index, values[known]) / counts for values in (old, new))
    gain = after - before
    drawn = np.random.default_rng(0).integers(0, len(gain), (RESAMPLES, len(gain)))
    low, high = np.percentile(gain[drawn].mean(axis=1), LEVEL)
    return FigureChange(
        name,
        regions=int(known.sum()),
        patients=len(gain),
        old=float(before.mean()),
        new=float(after.mean()),
        gain=float(gain.mean()),
        low=float(low),
        high=float(high),
    )


def _by_label(material: Material, old: _Asked, new: _Asked) -> tuple[LabelChange, ...]:
    labels = material.labels[old.rows]
    before, after = old.scores[MAP], new.scores[MAP]
    found = []
    for label in np.unique(labels[np.isfinite(before)]):
        own = (labels == label) & np.isfinite(before)
        gain = after[own] - before[own]
        better, worse = int((gain > _EVEN).sum()), int((gain < -_EVEN).sum())
        found.append(
            LabelChange(
                str(label),
                regions=len(gain),
                patients=len(np.unique(material.patients[old.rows[own]])),
                old=float(before[own].mean()),
                new=float(after[own].mean()),
                better=better,
                worse=worse,
                same=len(gain) - better - worse,
            )
        )
    return tuple(found)


def _examples(material: Material, old: _Asked, new: _Asked, gain: ArrayF64) -> tuple[Example, ...]:
    """The largest gains, the largest losses and what lies in the middle, each patient once."""
    known = np.flatnonzero(np.isfinite(gain))
    order = known[np.argsort(-gain[known], kind="stable")]
    middle = order[np.argsort(np.abs(np.arange(len(order)) - len(order) / 2), kind="stable")]
    chosen: list[int] = []
    seen: set[str] = set()
    for walk in (order, order[::-1], middle):
        fresh = len(chosen) + EXAMPLES_EACH
        for at in walk.tolist():
            patient = str(material.patients[old.rows[at]])
            if len(chosen) < fresh and patient not in seen:
                seen.add(patient)
                chosen.append(at)
    return tuple(
        Example(
            int(old.rows[at]),
            float(gain[at]),
            *(tuple(one.nearest[at][one.nearest[at] >= 0].tolist()) for one in (old, new)),
        )
        for at in sorted(chosen, key=lambda at: -gain[at])
    )
