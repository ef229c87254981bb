"""Training and evaluation of a metric, or evaluation of an encoder, on a lab's archive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.index.metric_learning.comparison import Comparison, compare
from ml.index.metric_learning.dataset import (
    MAP,
    MIN_TEST_PATIENTS,
    DataSufficiency,
    RegionDataset,
    held_out_mask,
    require_sufficient_data,
)
from ml.index.metric_learning.metric import IDENTITY, LearnedMetric, MetricConfig, learn_metric
from ml.index.ranking.calibration import Calibration
from ml.types import ArrayBool, ArrayF32, Progress

PROBABILITIES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    *(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
_PAIRS = 20_000  # sampled pairs: twenty are below the lowest quantile
_MIN_PAIRS = 2_000  # with fewer, the lowest quantile would be two pairs


@dataclass(frozen=True, slots=True)
class LearningOutcome:
    """Result of learning, with its evaluation.

    Attributes:
        chosen: Chosen candidate; ``identity`` if no candidate improved on the training patients.
        sufficiency: Amount of data, against the requirements.
        calibration: Calibration of distances under it; None if too few pairs are unrelated.
        learned_regions, learned_patients: Size of the training data.
        metric: None if an encoder was trained.
    """

    chosen: str
    sufficiency: DataSufficiency
    comparison: Comparison
    calibration: Calibration | None
    learned_regions: int
    learned_patients: int
    metric: LearnedMetric | None = None

    @property
    def is_identity(self) -> bool:
        """True if no candidate improved on the training patients."""
        return self.chosen == IDENTITY

    @property
    def is_better(self) -> bool:
        """True if it is not the identity and the confidence interval of the gain is above zero."""
        return not self.is_identity and self.comparison.is_better


def learn_from_archive(
    dataset: RegionDataset,
    *,
    before: ArrayF32 | None = None,
    progress: Progress | None = None,
    config: MetricConfig | None = None,
    min_test_patients: int = MIN_TEST_PATIENTS,
) -> LearningOutcome:
    """Learn a metric from the training patients and evaluate it on the test patients.

    Args:
        before: (N, E) float32 vectors in use now; None for those of ``dataset``.
        progress: Called in each phase; may raise to stop.
        min_test_patients: Smallest number of test patients.
    Raises:
        TooLittleError: Too few patients, labels or judgements; the message says how many.
    """
    is_test = held_out_mask(dataset.patients)
    sufficiency = require_sufficient_data(dataset, is_test, min_test_patients=min_test_patients)
    train = dataset.subset(~is_test)
    by_labels = sufficiency.measure == MAP
    metric = learn_metric(
        train.vectors,
        train.labels.tolist() if by_labels else [""] * len(train.labels),
        train.patients.tolist(),
        config,
        judged=train.judged,
        progress=progress,
    )
    mapped = metric.apply(dataset.vectors)
    comparison = compare(
        dataset, is_test, mapped, before=before, measure=sufficiency.measure, progress=progress
    )
    calibration = None if metric.is_identity else _calibration(dataset, mapped)
    return LearningOutcome(
        metric.chosen,
        sufficiency,
        comparison,
        calibration,
        learned_regions=len(train.vectors),
        learned_patients=len(np.unique(train.patients)),
        metric=metric,
    )


def evaluate_vectors(
    dataset: RegionDataset,
    is_test: ArrayBool,
    vectors: ArrayF32,
    *,
    before: ArrayF32 | None = None,
    chosen: str,
    learned_regions: int,
    learned_patients: int,
    progress: Progress | None = None,
    min_test_patients: int = MIN_TEST_PATIENTS,
) -> LearningOutcome:
    """Evaluate a trained encoder with the comparison of ``learn_from_archive``.

    Args:
        is_test: (N,) bool, regions of patients that it was not trained on.
        vectors: (N, D) float32, its vectors of the regions.
        before: See ``learn_from_archive``.
        chosen: Description of the training.
        learned_regions, learned_patients: Size of its training data.
    Raises:
        TooLittleError: Too few patients, labels or judgements to compare on.
    """
    sufficiency = require_sufficient_data(dataset, is_test, min_test_patients=min_test_patients)
    comparison = compare(
        dataset, is_test, vectors, before=before, measure=sufficiency.measure, progress=progress
    )
    calibration = _calibration(dataset, vectors)
    return LearningOutcome(
        chosen, sufficiency, comparison, calibration, learned_regions, learned_patients
    )


def _calibration(dataset: RegionDataset, mapped: ArrayF32) -> Calibration | None:
    """Null distribution: regions of different patients, with different labels if both have one."""
    rng = np.random.default_rng(0)
    a, b = np.unique(np.sort(rng.integers(0, len(mapped), (2, _PAIRS)), axis=0), axis=1)
    is_same = (dataset.labels[a] == dataset.labels[b]) & (dataset.labels[a] != "")
    unrelated = (dataset.patients[a] != dataset.patients[b]) & ~is_same
    a, b = a[unrelated], b[unrelated]
    if len(a) < _MIN_PAIRS:
        return None
    distance = np.linalg.norm(mapped[a].astype(np.float64) - mapped[b], axis=1)
    return Calibration.from_quantiles(
        PROBABILITIES,
        np.quantile(distance, PROBABILITIES).tolist(),
        pairs=len(a),
        regions=len(np.unique(np.concatenate([a, b]))),
        groups=sorted(set(dataset.labels.tolist()) - {""}),
    )
