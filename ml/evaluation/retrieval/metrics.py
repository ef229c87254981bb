"""Retrieval metrics on ranked lists, and bootstrap intervals over patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ml.errors import ShapeError
from ml.types import ArrayBool, ArrayF64

RANDOM_RUNS = 100
"""Number of random rankings whose mean is the chance level."""


def average_precision_at_k(relevant: ArrayBool, *, k: int, n_relevant: int) -> float:
    """Average precision of the first ``k`` results, normalised by min(k, n_relevant).

    Args:
        relevant: (N,) bool, whether each result is relevant, nearest first.
        k: length of the list that counts.
        n_relevant: relevant items in the gallery, above 0.
    Returns:
        Sum over ranks r <= k of relevant[r] * precision(r), divided by min(k, n_relevant): 1.0
        for a perfect list.
    Source: the retrieval paper, equation 8, with recall counted against min(k, n_relevant).
    """
    if n_relevant < 1:
        raise ShapeError("n_relevant", expected="at least 1", actual=str(n_relevant))
    return _precision_sum(relevant[:k]) / min(k, n_relevant)


def average_precision_by_hits(relevant: ArrayBool, *, k: int) -> float:
    """Average precision of the first ``k`` results, normalised by their hits.

    This other reading of AP@K is too favourable: a single hit at rank 1 scores 1.0, and a random
    ranking of four classes 0.34.
    """
    hits = int(np.count_nonzero(relevant[:k]))
    return _precision_sum(relevant[:k]) / hits if hits else 0.0


def precision_at_k(relevant: ArrayBool, *, k: int) -> float:
    """Share of relevant results among the first ``k``, or among all if there are fewer."""
    return float(relevant[:k].mean()) if relevant.size else 0.0


def majority_vote(labels: Sequence[str]) -> str:
    """Most common label; of equally common ones the label of the nearest result."""
    counts = Counter(labels)
    max_count = max(counts.values())
    return next(label for label in labels if counts[label] == max_count)


def bootstrap_interval(
    values: ArrayF64,
    groups: Sequence[str],
    *,
    repeats: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile interval of the mean when groups (patients) are resampled.

    Args:
        values: (N,) one value per query.
        groups: (N,) the patient of each.
        repeats: draws.
        seed: of the draws.
        level: share the interval covers.
    Returns:
        (low, high).
    """
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(index, values, len(names))
    counts = np.bincount(index, minlength=len(names))
    draws = np.random.default_rng(seed).integers(len(names), size=(repeats, len(names)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def macro_mean(values: ArrayF64, labels: Sequence[str]) -> float:
    """Mean over classes of their means.

    Args:
        values: (N,) one value per query.
        labels: (N,) the class of each.
    """
    names, index = np.unique(np.asarray(labels), return_inverse=True)
    sums = np.bincount(index, values, len(names))
    return float((sums / np.bincount(index, minlength=len(names))).mean())


def macro_bootstrap(
    values: ArrayF64,
    labels: Sequence[str],
    groups: Sequence[str],
    *,
    repeats: int = 1000,
    seed: int = 0,
) -> ArrayF64:
    """Bootstrap ``macro_mean`` over groups (patients); the same seed draws the same groups.

    Args:
        values, labels: see ``macro_mean``.
        groups: (N,) the patient of each.
    Returns:
        (repeats,) float64. A class without a query in a draw does not count in it.
    """
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    kinds, kind = np.unique(np.asarray(labels), return_inverse=True)
    sums, counts = np.zeros((2, len(names), len(kinds)))
    np.add.at(sums, (index, kind), values)
    np.add.at(counts, (index, kind), 1)
    draws = np.random.default_rng(seed).integers(len(names), size=(repeats, len(names)))
    total, draw_count = sums[draws].sum(axis=1), counts[draws].sum(axis=1)
    means = np.divide(total, draw_count, out=np.zeros_like(total), where=draw_count > 0)
    return np.asarray(means.sum(axis=1) / (draw_count > 0).sum(axis=1), np.float64)


def _precision_sum(relevant: npt.NDArray[np.bool_]) -> float:
    ranks = np.arange(1, relevant.size + 1)
    return float((np.cumsum(relevant) / ranks)[relevant].sum())
