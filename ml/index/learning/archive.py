"""From a lab's archive to a metric, or a trained encoder, and a verdict on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.answers.calibration import Calibration
from ml.index.learning.comparison import Comparison, compare
from ml.index.learning.material import (
    ASIDE_LEAST,
    MAP,
    Enough,
    Material,
    kept_aside,
    require_enough,
)
from ml.index.learning.metric import IDENTITY, LearnedMetric, MetricConfig, learn_metric
from ml.types import ArrayBool, ArrayF32, Progress

PROBABILITIES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    *(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
_PAIRS = 20_000  # of unrelated regions: twenty lie below the lowest quantile
_PAIRS_LEAST = 2_000  # below, the lowest quantile would be two pairs


@dataclass(frozen=True, slots=True)
class FromArchive:
    """What was learned, and what it is worth.

    Attributes:
        chosen: of what was tried; ``identity`` where nothing helped on the patients learned from.
        calibration: of distances under it; None if too few pairs are unrelated.
        learned_regions, learned_patients: how many it was learned from.
        metric: None if an encoder was trained.
    """

    chosen: str
    enough: Enough
    comparison: Comparison
    calibration: Calibration | None
    learned_regions: int
    learned_patients: int
    metric: LearnedMetric | None = None

    @property
    def is_identity(self) -> bool:
        """Nothing was learned that helped."""
        return self.chosen == IDENTITY

    @property
    def is_better(self) -> bool:
        """By a rule fixed beforehand: not the identity, and the interval of the gain above zero."""
        return not self.is_identity and self.comparison.is_better


def learn_from_archive(
    material: Material,
    *,
    before: ArrayF32 | None = None,
    progress: Progress | None = None,
    config: MetricConfig | None = None,
    aside_least: int = ASIDE_LEAST,
) -> FromArchive:
    """Learn a metric from most patients and compare it on those kept aside.

    Args:
        before: (N, E) vectors that are searched by now; None for the material's own.
        progress: called in each phase; may raise to stop.
        aside_least: patients to compare on; fewer than the default prove little.
    Raises:
        TooLittleError: too few patients, labels or judgements; the message says how many.
    """
    aside = kept_aside(material.patients)
    found = require_enough(material, aside, aside_least=aside_least)
    train = material.part(~aside)
    by_labels = found.judges_by == MAP
    metric = learn_metric(
        train.vectors,
        train.labels.tolist() if by_labels else [""] * len(train.labels),
        train.patients.tolist(),
        config,
        judged=train.judged,
        progress=progress,
    )
    mapped = metric.apply(material.vectors)
    comparison = compare(
        material, aside, mapped, before=before, judges_by=found.judges_by, progress=progress
    )
    calibration = None if metric.is_identity else _calibration(material, mapped)
    return FromArchive(
        metric.chosen,
        found,
        comparison,
        calibration,
        learned_regions=len(train.vectors),
        learned_patients=len(np.unique(train.patients)),
        metric=metric,
    )


def judge_vectors(
    material: Material,
    aside: ArrayBool,
    vectors: ArrayF32,
    *,
    before: ArrayF32 | None = None,
    chosen: str,
    learned_regions: int,
    learned_patients: int,
    progress: Progress | None = None,
    aside_least: int = ASIDE_LEAST,
) -> FromArchive:
    """What a trained encoder is worth, compared as ``learn_from_archive`` compares.

    Args:
        aside: (N,) regions of patients that it was not trained on.
        vectors: (N, D) of the material's regions by it. before: as ``learn_from_archive``.
        chosen: in words, what was trained.
        learned_regions, learned_patients: how many it was trained on.
    Raises:
        TooLittleError: too few patients, labels or judgements to compare on.
    """
    found = require_enough(material, aside, aside_least=aside_least)
    comparison = compare(
        material, aside, vectors, before=before, judges_by=found.judges_by, progress=progress
    )
    calibration = _calibration(material, vectors)
    return FromArchive(chosen, found, comparison, calibration, learned_regions, learned_patients)


def _calibration(material: Material, mapped: ArrayF32) -> Calibration | None:
    """Distances between regions of different patients, of different labels where both have one."""
    rng = np.random.default_rng(0)
    a, b = np.unique(np.sort(rng.integers(0, len(mapped), (2, _PAIRS)), axis=0), axis=1)
    is_same = (material.labels[a] == material.labels[b]) & (material.labels[a] != "")
    unrelated = (material.patients[a] != material.patients[b]) & ~is_same
    a, b = a[unrelated], b[unrelated]
    if len(a) < _PAIRS_LEAST:
        return None
    distance = np.linalg.norm(mapped[a].astype(np.float64) - mapped[b], axis=1)
    return Calibration.from_quantiles(
        PROBABILITIES,
        np.quantile(distance, PROBABILITIES).tolist(),
        pairs=len(a),
        regions=len(np.unique(np.concatenate([a, b]))),
        groups=sorted(set(material.labels.tolist()) - {""}),
    )
