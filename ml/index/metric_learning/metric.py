"""Metric learning from labels and judgements: a linear map, or the identity if none is better.

Directions that vary within a label, or between regions judged alike, are shrunk. Directions that
separate labels, or regions judged unlike, are stretched. The amounts are chosen by cross-validation
over patients; a map replaces the identity only if its gain exceeds two standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.files import NO_ARRAYS, write_npz
from ml.index.exact import squared_distances
from ml.index.metric_learning.dataset import RegionDataset
from ml.index.metric_learning.judgements import Judgements
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

IDENTITY = "identity"
_ERRORS = 2.0
"""Standard errors that a gain has to exceed."""

_UNLIKE_DIRECTIONS = 3
"""Principal directions of the differences between regions judged unlike."""

Strings = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class MetricConfig:
    """Candidates of metric learning, and their evaluation."""

    # Few candidates: with twelve, the best showed a false gain in one of five simulations.
    shrinkage: tuple[float, ...] = (0.9, 0.5)  # share of the identity in a covariance
    stretch: tuple[float, ...] = (1.0, 3.0)  # of the directions that separate labels
    folds: int = 5  # of cross-validation over patients
    k: int = 10  # cut-off rank of precision
    seed: int = 0  # of the assignment of patients to folds


@dataclass(frozen=True, slots=True)
class LearnedMetric:
    """A linear map, after which Euclidean distances are compared.

    Attributes:
        matrix: (D, D) float64, multiplied from the right with row vectors.
        chosen: "identity", or the chosen shrinkage and stretch.
        score, plain: Cross-validated score of the chosen candidate and of the identity.
        margin: Mean gain over patients of the best candidate.
        error: Standard error of the margin.
    """

    matrix: ArrayF64
    chosen: str
    score: float
    plain: float
    margin: float
    error: float

    @property
    def is_identity(self) -> bool:
        """True if the map changes nothing."""
        return self.chosen == IDENTITY

    def apply(self, vectors: ArrayF32) -> ArrayF32:
        """Map vectors (N, D) float32.

        Raises:
            ShapeError: Vectors of another length.
        """
        if vectors.ndim != 2 or vectors.shape[1] != len(self.matrix):
            raise ShapeError(
                "vectors", expected=f"(N, {len(self.matrix)})", actual=str(vectors.shape)
            )
        return vectors if self.is_identity else (vectors @ self.matrix).astype(np.float32)


def learn_metric(
    vectors: ArrayF32,
    labels: Sequence[str],
    patients: Sequence[str],
    config: MetricConfig | None = None,
    *,
    judged: Judgements | None = None,
    progress: Progress | None = None,
) -> LearnedMetric:
    """Learn a metric from labelled regions, with cross-validation over patients.

    Args:
        vectors: (N, D) float32.
        labels, patients: (N,) of each; "" is no label.
        config: Candidates.
        judged: Pairs that people compared, used in addition to or instead of labels.
        progress: Called before each fold; may raise to stop.
    Returns:
        The candidate with the best score on held-out patients (the mean over labels of the share
        of right labels among the ``k`` nearest of other folds; with fewer than two labels, the
        agreement of distances with people), if it beats the identity by more than two standard
        errors over patients; else the identity.
    Raises:
        ShapeError: Not one label and patient per vector.
        BadInputError: Fewer than two patients, or fewer than two labels and no judgements.
    Source: linear discriminant analysis with a shrunk covariance within classes (Friedman 1989);
        departs from it by keeping all directions, and by the choice over patients. Of pairs:
        relevant and discriminative components (Bar-Hillel et al. 2005; Hoi et al. 2006).
    """
    config = config or MetricConfig()
    data = _check_data(vectors, labels, patients, judged)
    folds = _folds(data.patients, config)

    def report(fold: int) -> None:
        if progress is not None:
            progress(fold, int(folds.max()) + 1, "learning")

    plain = _precisions(data, folds, config, lambda train: [np.eye(vectors.shape[1])])[0]
    names = [f"shrinkage {a:g}, stretch {b:g}" for a in config.shrinkage for b in config.stretch]
    precisions = _precisions(data, folds, config, lambda train: _candidates(train, config), report)
    scores = [_mean_over_labels(values, data.labels) for values in precisions]
    best = int(np.argmax(scores))
    margin, error = _gain(precisions[best] - plain, data.patients)
    before = _mean_over_labels(plain, data.labels)
    if not (margin > _ERRORS * error and scores[best] > before):
        return LearnedMetric(np.eye(vectors.shape[1]), IDENTITY, before, before, margin, error)
    matrix = _candidates(data, config)[best]
    return LearnedMetric(matrix, names[best], scores[best], before, margin, error)


def write_metric(path: Path, metric: LearnedMetric) -> None:
    """Write a metric as ``.npz``, atomically."""
    write_npz(
        path,
        {
            "matrix": metric.matrix,
            "chosen": np.array(metric.chosen),
            "figures": np.array([metric.score, metric.plain, metric.margin, metric.error]),
        },
    )


def read_metric(path: Path) -> LearnedMetric:
    """Read the output of ``write_metric``.

    Raises:
        CorruptFileError: Not a metric.
    """
    try:
        with np.load(path) as file:
            matrix, chosen = file["matrix"].astype(np.float64), str(file["chosen"])
            score, plain, margin, error = file["figures"].tolist()
    except NO_ARRAYS as problem:
        raise CorruptFileError(f"{path.name}: not a metric") from problem
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise CorruptFileError(f"{path.name}: not a metric")
    return LearnedMetric(matrix, chosen, score, plain, margin, error)


@dataclass(frozen=True, slots=True)
class _Labelled:
    vectors: ArrayF64
    labels: Strings
    patients: Strings
    judged: Judgements

    def subset(self, rows: ArrayBool) -> _Labelled:
        parts = (self.vectors[rows], self.labels[rows], self.patients[rows])
        return _Labelled(*parts, self.judged.subset(rows))


def _check_data(
    vectors: ArrayF32, labels: Sequence[str], patients: Sequence[str], judged: Judgements | None
) -> _Labelled:
    raw = RegionDataset.create(vectors, labels, patients, judged)
    data = _Labelled(raw.vectors.astype(np.float64), raw.labels, raw.patients, raw.judged)
    if not (_has_labels(data) or len(data.judged)):
        raise BadInputError("a metric needs two labels or more, got fewer")
    if len(np.unique(data.patients)) < 2:
        raise BadInputError("a metric needs two patients or more, got fewer")
    return data


def _has_labels(data: _Labelled) -> bool:
    return len(np.unique(data.labels[data.labels != ""])) >= 2


def _folds(patients: Strings, config: MetricConfig) -> ArrayI64:
    """Fold (N,) of each region; all regions of a patient are in one fold."""
    names, index = np.unique(patients, return_inverse=True)
    order = np.random.default_rng(config.seed).permutation(len(names))
    fold_of = np.empty(len(names), np.int64)
    fold_of[order] = np.arange(len(names)) % min(config.folds, len(names))
    return np.asarray(fold_of[index])


def _precisions(
    data: _Labelled,
    folds: ArrayI64,
    config: MetricConfig,
    learn: Callable[[_Labelled], Sequence[ArrayF64]],
    report: Callable[[int], None] = lambda fold: None,
) -> ArrayF64:
    """Precision (C, N) of each candidate among the nearest of other folds; NaN without any.

    With fewer than two labels, the agreement of distances with the judgements.
    """
    out: list[ArrayF64] = []
    by_labels = _has_labels(data)
    for fold in range(int(folds.max()) + 1):
        report(fold)
        is_query = folds == fold
        training = data.subset(~is_query)
        for number, matrix in enumerate(learn(training)):
            if len(out) <= number:
                out.append(np.full(len(data.labels), np.nan))
            if not by_labels:
                out[number][is_query] = data.judged.agreement(data.vectors @ matrix, is_query)[
                    is_query
                ]
                continue
            distance = squared_distances(data.vectors[is_query] @ matrix, training.vectors @ matrix)
            out[number][is_query] = _precision(
                distance, data.labels[is_query], training.labels, config.k
            )
    return np.array(out)


def _precision(distance: ArrayF64, query: Strings, labels: Strings, k: int) -> ArrayF64:
    is_right = (query[:, None] == labels[None]) & (query != "")[:, None]
    possible = np.minimum(is_right.sum(axis=1), k)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(is_right, order, axis=1).sum(axis=1)
    return np.divide(hits, possible, out=np.full(len(query), np.nan), where=possible > 0)


def _candidates(train: _Labelled, config: MetricConfig) -> list[ArrayF64]:
    """Maps (D, D) for each shrinkage and stretch, learned from the training regions."""
    means, differences = _differences_within_labels(train)
    eye = np.eye(train.vectors.shape[1])
    if not len(differences):
        values, directions = np.ones(len(eye)), eye
    else:
        values, directions = np.linalg.eigh(differences.T @ differences / len(differences))
    level = max(float(values.mean()), np.finfo(np.float64).tiny)
    transforms = []
    for share in config.shrinkage:
        scale = np.sqrt(level / np.maximum((1 - share) * values + share * level, 1e-12 * level))
        whiten = (directions * scale) @ directions.T
        between = _directions_between_labels(train, means, whiten)
        transforms += [whiten @ (eye + (s - 1) * between.T @ between) for s in config.stretch]
    return transforms


def _differences_within_labels(train: _Labelled) -> tuple[ArrayF64, ArrayF64]:
    """Label means (L, D), and differences (M, D) within labels and between regions judged alike."""
    is_labelled = train.labels != ""
    names, index = np.unique(train.labels[is_labelled], return_inverse=True)
    labelled = train.vectors[is_labelled]
    means = np.array([labelled[index == n].mean(axis=0) for n in range(len(names))])
    means = means.reshape(-1, train.vectors.shape[1])
    alike = _differences(train, is_alike=True) / np.sqrt(
        2
    )  # the difference of two regions has twice the variance
    return means, np.concatenate([labelled - means[index], alike])


def _directions_between_labels(train: _Labelled, means: ArrayF64, whiten: ArrayF64) -> ArrayF64:
    """Orthonormal directions (B, D) that separate labels and regions judged unlike."""
    parts = []
    if len(means) >= 2:
        parts.append(_directions((means - means.mean(axis=0)) @ whiten, len(means)))
    unlike = _differences(train, is_alike=False)
    if len(unlike):
        parts.append(_directions(unlike @ whiten, _UNLIKE_DIRECTIONS))
    return _directions(np.concatenate(parts), len(whiten)) if parts else np.zeros((0, len(whiten)))


def _directions(rows: ArrayF64, max_count: int) -> ArrayF64:
    _, strength, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[strength > 1e-9 * max(float(strength[0]), 1e-300)][:max_count])


def _differences(train: _Labelled, *, is_alike: bool) -> ArrayF64:
    judged = train.judged
    mask = judged.alike == is_alike
    return np.asarray(train.vectors[judged.query[mask]] - train.vectors[judged.result[mask]])


def _mean_over_labels(values: ArrayF64, labels: Strings) -> float:
    """Mean over labels of the mean of their known values."""
    means = _means(values, labels)
    return float(means.mean()) if len(means) else 0.0


def _gain(difference: ArrayF64, patients: Strings) -> tuple[float, float]:
    """Mean over patients of their mean gain, and its standard error."""
    means = _means(difference, patients)
    if len(means) < 2:
        return 0.0, float("inf")
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def _means(values: ArrayF64, groups: Strings) -> ArrayF64:
    """Mean of each group, ignoring NaN; groups of only NaN are left out."""
    is_known = np.isfinite(values)
    _, index = np.unique(groups[is_known], return_inverse=True)
    return np.asarray(np.bincount(index, values[is_known]) / np.bincount(index))
