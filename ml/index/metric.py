"""A metric learned from a lab's labels: a linear map of vectors, or none where none helps.

Directions in which regions of one label differ between and within patients are shrunk, those in
which labels differ are stretched. How much of each is chosen on patients kept apart, and a map is
kept only where it beats the vectors as they are by twice its own standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.files import write_npz
from ml.types import ArrayF32, ArrayF64, ArrayI64

IDENTITY = "identity"
_ERRORS = 2.0
"""A gain below twice its standard error may be chance: then vectors stay as they are."""

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
        """True where vectors stay as they are."""
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
) -> LearnedMetric:
    """Learn a metric from labelled regions, with patients kept apart.

    Args:
        vectors: (N, D) float32. labels, patients: (N,) of each.
        config: what is tried.
    Returns:
        The candidate with the best score of patients kept apart (the mean over labels of the share
        of right labels among the ``k`` nearest of other folds), if it beats the identity by more
        than two standard errors over patients; else the identity.
    Raises:
        ShapeError: not one label and patient a vector.
        BadInputError: fewer than two labels, or than two patients.
    Source: linear discriminant analysis with a shrunk covariance within classes (Friedman 1989);
        departs from it by keeping all directions, and by the choice over patients.
    """
    config = config or MetricConfig()
    data = _checked(vectors, labels, patients)
    folds = _folds(data.patients, config)
    plain = _precisions(data, folds, config, lambda train: [np.eye(vectors.shape[1])])[0]
    names = [f"shrinkage {a:g}, stretch {b:g}" for a in config.shrinkage for b in config.stretch]
    found = _precisions(data, folds, config, lambda train: _candidates(train, config))
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
    except (OSError, ValueError, KeyError, EOFError) as problem:
        raise CorruptFileError(f"{path.name}: not a metric") from problem
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise CorruptFileError(f"{path.name}: not a metric")
    return LearnedMetric(matrix, chosen, score, plain, margin, error)


@dataclass(frozen=True, slots=True)
class _Labelled:
    vectors: ArrayF64
    labels: Strings
    patients: Strings

    def of(self, rows: npt.NDArray[np.bool_]) -> _Labelled:
        return _Labelled(self.vectors[rows], self.labels[rows], self.patients[rows])


def _checked(vectors: ArrayF32, labels: Sequence[str], patients: Sequence[str]) -> _Labelled:
    if vectors.ndim != 2 or not len(vectors) == len(labels) == len(patients):
        raise ShapeError(
            "vectors", expected=f"({len(labels)}, D), a patient each", actual=str(vectors.shape)
        )
    data = _Labelled(vectors.astype(np.float64), np.asarray(labels), np.asarray(patients))
    for name, values in (("labels", data.labels), ("patients", data.patients)):
        if len(np.unique(values)) < 2:
            raise BadInputError(f"a metric is learned from two {name} or more, got fewer")
    return data


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
) -> ArrayF64:
    """(C, N) share of right labels among the nearest of other folds; NaN where there is none."""
    from scipy.spatial.distance import cdist

    out: list[ArrayF64] = []
    for fold in range(int(folds.max()) + 1):
        asks = folds == fold
        rest = data.of(~asks)
        for number, matrix in enumerate(learn(rest)):
            if len(out) <= number:
                out.append(np.full(len(data.labels), np.nan))
            distance = cdist(data.vectors[asks] @ matrix, rest.vectors @ matrix)
            out[number][asks] = _precision(distance, data.labels[asks], rest.labels, config.k)
    return np.array(out)


def _precision(distance: ArrayF64, asked: Strings, known: Strings, k: int) -> ArrayF64:
    is_right = asked[:, None] == known[None]
    possible = np.minimum(is_right.sum(axis=1), k)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(is_right, order, axis=1).sum(axis=1)
    return np.divide(hits, possible, out=np.full(len(asked), np.nan), where=possible > 0)


def _candidates(train: _Labelled, config: MetricConfig) -> list[ArrayF64]:
    """A map for each shrinkage and stretch, learned from these regions."""
    names, index = np.unique(train.labels, return_inverse=True)
    means = np.stack([train.vectors[index == n].mean(axis=0) for n in range(len(names))])
    apart = train.vectors - means[index]
    values, directions = np.linalg.eigh(apart.T @ apart / len(apart))
    level = max(float(values.mean()), np.finfo(np.float64).tiny)
    found = []
    for share in config.shrinkage:
        scale = np.sqrt(level / np.maximum((1 - share) * values + share * level, 1e-12 * level))
        whiten = (directions * scale) @ directions.T
        _, strength, between = np.linalg.svd(
            (means - means.mean(axis=0)) @ whiten, full_matrices=False
        )
        between = between[strength > 1e-9 * max(float(strength[0]), 1e-300)]
        found += [
            whiten @ (np.eye(len(whiten)) + (s - 1) * between.T @ between) for s in config.stretch
        ]
    return found


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
