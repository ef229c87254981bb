"""Metrics of key point matching: precision, matching score, curves, thresholds, pose errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.types import ArrayBool, ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class PairMatches:
    """Nearest neighbours of one pair under the papers' protocol.

    Attributes:
        family, value: of the pair.
        partners: number of key points with a partner in the other image.
        distance: (K,) float32, K <= partners: points without a descriptor have no neighbour.
        is_right: (K,) bool, within the projection error.
        is_exact: (K,) bool, the partner itself.
    """

    family: str
    value: float
    partners: int
    distance: ArrayF32
    is_right: ArrayBool
    is_exact: ArrayBool


@dataclass(frozen=True, slots=True)
class Threshold:
    """A distance under which a nearest neighbour is kept.

    Attributes:
        distance: exclusive bound.
        reached: whether the target precision is reached; if not, the
        distance is that of the best F1.
    """

    distance: float
    reached: bool


def precision(right: float, match_count: float) -> float:
    """Right matches / matches (eq. 17 of dinov2-adaptation); NaN if nothing was found."""
    return right / match_count if match_count else float("nan")


def matching_score(right: float, partners: float) -> float:
    """Right matches / key points with a partner; NaN if there is none."""
    return right / partners if partners else float("nan")


def recall_curve(
    distance: npt.NDArray[np.float32], is_right: ArrayBool, partners: int
) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
    """Recall against 1 - precision, one point for each threshold that changes the selection.

    Args:
        distance, is_right: (K,), nearest neighbours.
        partners: number of correspondences.
    Returns:
        threshold, one_minus_precision, recall: (P,) float64 each, by rising threshold; what is
        *at most* as far as the threshold is kept.
    Source: Mikolajczyk and Schmid 2005, with the projection error for the overlap error as
        graph-ssl-endoscopic-matching, section 4.3.
    """
    order = np.argsort(distance, kind="stable")
    sorted_distance = np.asarray(distance, np.float64)[order]
    last = np.flatnonzero(np.r_[sorted_distance[1:] != sorted_distance[:-1], len(order) > 0])
    right = np.cumsum(is_right[order])[last].astype(np.float64)
    match_counts = (last + 1).astype(np.float64)
    return sorted_distance[last], 1.0 - right / match_counts, right / max(partners, 1)


def choose_threshold(pairs: Sequence[PairMatches], *, target: float | None) -> Threshold:
    """Choose the threshold of the best score at a least precision, or of the best F1.

    Args:
        target: least precision over all pairs; None for the best F1.
    Returns:
        Threshold: that of the best F1 with ``reached`` False if no threshold is that precise.
    """
    distance, right, partners = pooled(pairs)
    levels, wrong, recall = recall_curve(distance, right, partners)
    if not len(levels):
        return Threshold(0.0, False)
    min_precision = 2.0 if target is None else target
    candidates = np.flatnonzero(wrong <= 1.0 - min_precision + 1e-12)
    if len(candidates):
        best, reached = int(candidates[np.argmax(recall[candidates])]), True
    else:
        f1 = 2 * (1 - wrong) * recall / np.maximum(1 - wrong + recall, 1e-12)
        best, reached = int(np.argmax(f1)), target is None
    above = np.nextafter(np.float32(levels[best]), np.float32(np.inf))
    return Threshold(float(above), reached)


def pooled(pairs: Sequence[PairMatches]) -> tuple[ArrayF32, ArrayBool, int]:
    """(distance, is_right, partners) of all pairs, concatenated."""
    if not pairs:
        return np.zeros(0, np.float32), np.zeros(0, np.bool_), 0
    return (
        np.concatenate([pair.distance for pair in pairs]),
        np.concatenate([pair.is_right for pair in pairs]),
        sum(pair.partners for pair in pairs),
    )


def worst_tenth(values: Sequence[float]) -> float:
    """Mean of the lowest tenth of the values, of one value at least; NaN counts as 0."""
    if not len(values):
        return float("nan")
    ordered = np.sort(np.nan_to_num(np.asarray(values, np.float64)))
    return float(ordered[: max(1, len(ordered) // 10)].mean())


def area_under_curve(one_minus_precision: ArrayF64, recall: ArrayF64) -> float:
    """Mean, over 1 - precision in [0, 1], of the best recall with at most that share wrong."""
    if not len(recall):
        return 0.0
    order = np.lexsort((recall, one_minus_precision))
    best = np.maximum.accumulate(recall[order])
    x = np.r_[one_minus_precision[order], 1.0]
    return float((np.diff(x) * best).sum())


def fundamental_error(estimate: ArrayF64, truth: ArrayF64) -> float:
    """Eq. 18 of dinov2-adaptation: ||F - F_gt|| / (||F|| ||F_gt||), Frobenius norms.

    A fundamental matrix has neither scale nor sign: both are scaled to unit norm first, and the
    better sign counts, so the error is in [0, sqrt(2)].
    """
    a = estimate / np.linalg.norm(estimate)
    b = truth / np.linalg.norm(truth)
    return float(min(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def pose_auc(errors_deg: Sequence[float], limit_deg: float) -> float:
    """Area under the recall curve of pose errors up to a limit, as a share of the limit."""
    if not len(errors_deg):
        return float("nan")
    errors = np.sort(np.asarray(errors_deg, np.float64))
    recall = np.arange(1, len(errors) + 1) / len(errors)
    under = errors < limit_deg
    x = np.r_[0.0, errors[under], limit_deg]
    y = np.r_[0.0, recall[under], recall[under][-1] if under.any() else 0.0]
    return float(np.trapezoid(y, x) / limit_deg)
