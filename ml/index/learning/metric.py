"""A metric learned from a lab's labels and judgements: a linear map, or none where none helps.

Directions in which regions of one label, or that people called alike, differ are shrunk; those in
which labels differ, or regions that people called unlike, are stretched. How much of each is chosen
on patients kept apart, and a map is kept only where it beats the vectors as they are by twice its
own standard error.
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
from ml.index.learning.judged import Judged
from ml.index.learning.material import Material
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

IDENTITY = "identity"
_ERRORS = 2.0
"""A gain below twice its standard error may be chance: then vectors stay as they are."""

_UNLIKE_DIRECTIONS = 3
"""Main directions of what people called unlike: each mark names one difference; few are enough."""

Strings = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class MetricConfig:
    """What is tried, and how it is judged."""

    # Few candidates: the best of twelve was taken for a gain in one of five worlds without any.
    shrinkage: tuple[float, ...] = (0.9, 0.5)  # share of the identity in a covariance
    stretch: tuple[float, ...] = (1.0, 3.0)  # of the directions in which labels differ
    folds: int = 5  # groups of patients that take turns to ask
    k: int = 10  # nearest that count
    seed: int = 0  # of the order in which patients are dealt to folds


@dataclass(frozen=True, slots=True)
class LearnedMetric:
    """A linear map, after which Euclidean distances are compared.

    Attributes:
        matrix: (D, D) float64: a row vector is multiplied by it. The identity where nothing helped.
        chosen: what was chosen, "identity" or the shrinkage and stretch.
        score, plain: of patients kept apart, with what was chosen and with vectors as they are.
        margin: mean gain over patients of the best candidate. error: its standard error.
    """

    matrix: ArrayF64
    chosen: str
    score: float
    plain: float
    margin: float
    error: float

    @property
    def is_identity(self) -> bool:
        """True if vectors stay as they are."""
        return self.chosen == IDENTITY

    def apply(self, vectors: ArrayF32) -> ArrayF32:
        """Vectors (N, D) under the metric.

        Raises:
            ShapeError: another length.
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
    judged: Judged | None = None,
    progress: Progress | None = None,
) -> LearnedMetric:
    """Learn a metric from labelled regions, with patients kept apart.

    Args:
        vectors: (N, D) float32. labels, patients: (N,) of each; "" is no label.
        config: what is tried.
        judged: pairs that people compared; they are learned from beside the labels, or alone.
        progress: called before each fold; may raise to stop.
    Returns:
        The candidate with the best score of patients kept apart (the mean over labels of the share
        of right labels among the ``k`` nearest of other folds; with fewer than two labels, how well
        distances agree with people), if it beats the identity by more than two standard errors over
        patients; else the identity.
    Raises:
        ShapeError: not one label and patient per vector.
        BadInputError: fewer than two patients, or than two labels and nothing judged.
    Source: linear discriminant analysis with a shrunk covariance within classes (Friedman 1989);
        departs from it by keeping all directions, and by the choice over patients. Of pairs:
        relevant and discriminative components (Bar-Hillel et al. 2005; Hoi et al. 2006).
    """
    config = config or MetricConfig()
    data = _checked(vectors, labels, patients, judged)
    folds = _folds(data.patients, config)

    def told(fold: int) -> None:
        if progress is not None:
            progress(fold, int(folds.max()) + 1, "learning")

    plain = _precisions(data, folds, config, lambda train: [np.eye(vectors.shape[1])])[0]
    names = [f"shrinkage {a:g}, stretch {b:g}" for a in config.shrinkage for b in config.stretch]
    found = _precisions(data, folds, config, lambda train: _candidates(train, config), told)
    scores = [_over_labels(values, data.labels) for values in found]
    best = int(np.argmax(scores))
    margin, error = _gain(found[best] - plain, data.patients)
    before = _over_labels(plain, data.labels)
    if not (margin > _ERRORS * error and scores[best] > before):
        return LearnedMetric(np.eye(vectors.shape[1]), IDENTITY, before, before, margin, error)
    matrix = _candidates(data, config)[best]
    return LearnedMetric(matrix, names[best], scores[best], before, margin, error)


def write_metric(path: Path, metric: LearnedMetric) -> None:
    """Write a metric as ``.npz``, whole or not at all."""
    write_npz(
        path,
        {
            "matrix": metric.matrix,
            "chosen": np.array(metric.chosen),
            "figures": np.array([metric.score, metric.plain, metric.margin, metric.error]),
        },
    )


def read_metric(path: Path) -> LearnedMetric:
    """Read what ``write_metric`` wrote.

    Raises:
        CorruptFileError: not a metric.
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
    judged: Judged

    def of(self, rows: ArrayBool) -> _Labelled:
        own = (self.vectors[rows], self.labels[rows], self.patients[rows])
        return _Labelled(*own, self.judged.of(rows))


def _checked(
    vectors: ArrayF32, labels: Sequence[str], patients: Sequence[str], judged: Judged | None
) -> _Labelled:
    own = Material.of(vectors, labels, patients, judged)
    data = _Labelled(own.vectors.astype(np.float64), own.labels, own.patients, own.judged)
    if not (_goes_by_labels(data) or len(data.judged)):
        raise BadInputError("a metric needs two labels or more, got fewer")
    if len(np.unique(data.patients)) < 2:
        raise BadInputError("a metric needs two patients or more, got fewer")
    return data


def _goes_by_labels(data: _Labelled) -> bool:
    return len(np.unique(data.labels[data.labels != ""])) >= 2


def _folds(patients: Strings, config: MetricConfig) -> ArrayI64:
    """(N,) fold of each region: whole patients, dealt in a seeded order."""
    names, index = np.unique(patients, return_inverse=True)
    order = np.random.default_rng(config.seed).permutation(len(names))
    dealt = np.empty(len(names), np.int64)
    dealt[order] = np.arange(len(names)) % min(config.folds, len(names))
    return np.asarray(dealt[index])


def _precisions(
    data: _Labelled,
    folds: ArrayI64,
    config: MetricConfig,
    learn: Callable[[_Labelled], Sequence[ArrayF64]],
    told: Callable[[int], None] = lambda fold: None,
) -> ArrayF64:
    """(C, N) share of right labels among the nearest of other folds; NaN if there is none.

    Where labels do not tell, how well distances agree with people.
    """
    out: list[ArrayF64] = []
    by_labels = _goes_by_labels(data)
    for fold in range(int(folds.max()) + 1):
        told(fold)
        asks = folds == fold
        rest = data.of(~asks)
        for number, matrix in enumerate(learn(rest)):
            if len(out) <= number:
                out.append(np.full(len(data.labels), np.nan))
            if not by_labels:
                out[number][asks] = data.judged.agreement(data.vectors @ matrix, asks)[asks]
                continue
            distance = squared_distances(data.vectors[asks] @ matrix, rest.vectors @ matrix)
            out[number][asks] = _precision(distance, data.labels[asks], rest.labels, config.k)
    return np.array(out)


def _precision(distance: ArrayF64, asked: Strings, known: Strings, k: int) -> ArrayF64:
    is_right = (asked[:, None] == known[None]) & (asked != "")[:, None]
    possible = np.minimum(is_right.sum(axis=1), k)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(is_right, order, axis=1).sum(axis=1)
    return np.divide(hits, possible, out=np.full(len(asked), np.nan), where=possible > 0)


def _candidates(train: _Labelled, config: MetricConfig) -> list[ArrayF64]:
    """A map for each shrinkage and stretch, learned from these regions."""
    means, apart = _within(train)
    eye = np.eye(train.vectors.shape[1])
    if not len(apart):
        values, directions = np.ones(len(eye)), eye
    else:
        values, directions = np.linalg.eigh(apart.T @ apart / len(apart))
    level = max(float(values.mean()), np.finfo(np.float64).tiny)
    found = []
    for share in config.shrinkage:
        scale = np.sqrt(level / np.maximum((1 - share) * values + share * level, 1e-12 * level))
        whiten = (directions * scale) @ directions.T
        between = _between(train, means, whiten)
        found += [whiten @ (eye + (s - 1) * between.T @ between) for s in config.stretch]
    return found


def _within(train: _Labelled) -> tuple[ArrayF64, ArrayF64]:
    """Means of the labels (L, D), and (M, D) what differs within: of labels, and of alike pairs."""
    is_labelled = train.labels != ""
    names, index = np.unique(train.labels[is_labelled], return_inverse=True)
    own = train.vectors[is_labelled]
    means = np.array([own[index == n].mean(axis=0) for n in range(len(names))])
    means = means.reshape(-1, train.vectors.shape[1])
    alike = _differences(train, is_alike=True) / np.sqrt(2)  # two regions differ by both
    return means, np.concatenate([own - means[index], alike])


def _between(train: _Labelled, means: ArrayF64, whiten: ArrayF64) -> ArrayF64:
    """(B, D) orthonormal directions in which labels differ, and what people called unlike."""
    parts = []
    if len(means) >= 2:
        parts.append(_directions((means - means.mean(axis=0)) @ whiten, len(means)))
    unlike = _differences(train, is_alike=False)
    if len(unlike):
        parts.append(_directions(unlike @ whiten, _UNLIKE_DIRECTIONS))
    return _directions(np.concatenate(parts), len(whiten)) if parts else np.zeros((0, len(whiten)))


def _directions(rows: ArrayF64, most: int) -> ArrayF64:
    _, strength, found = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(found[strength > 1e-9 * max(float(strength[0]), 1e-300)][:most])


def _differences(train: _Labelled, *, is_alike: bool) -> ArrayF64:
    judged = train.judged
    of = judged.alike == is_alike
    return np.asarray(train.vectors[judged.asked[of]] - train.vectors[judged.other[of]])


def _over_labels(values: ArrayF64, labels: Strings) -> float:
    """Mean over labels of their means, of the regions that could be answered."""
    means = _means(values, labels)
    return float(means.mean()) if len(means) else 0.0


def _gain(difference: ArrayF64, patients: Strings) -> tuple[float, float]:
    """Mean over patients of their mean gains, and its standard error."""
    means = _means(difference, patients)
    if len(means) < 2:
        return 0.0, float("inf")
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def _means(values: ArrayF64, groups: Strings) -> ArrayF64:
    """Of each group, leaving out NaN; groups of nothing else are left out."""
    is_known = np.isfinite(values)
    _, index = np.unique(groups[is_known], return_inverse=True)
    return np.asarray(np.bincount(index, values[is_known]) / np.bincount(index))
