"""Summaries of the protocols by family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import numpy as np

from ml.evaluation.matching.metrics import (
    PairMatches,
    Threshold,
    area_under_curve,
    choose_threshold,
    matching_score,
    pooled,
    precision,
    recall_curve,
    worst_tenth,
)
from ml.evaluation.matching.pairs import CORE_FAMILIES, FAMILIES
from ml.evaluation.matching.protocols import CountScore, HardScore

CURVE_POINTS = 60
"""Number of points stored of a curve."""
RECALL_AT_WRONG = (0.01, 0.05)
"""Shares of wrong matches at which recall is read."""


Rates = dict[str, float]
"""Figures by name, as ``papers_summary`` and ``hard_summary`` list them."""


class Thresholds(TypedDict):
    """NNT distances of the two halves of the images, and whether they reached the target."""

    target: list[float]
    target_reached: list[bool]
    f1: list[float]


class PapersScores(TypedDict):
    """Scores of one descriptor under the papers' protocol; see ``papers_summary``."""

    families: dict[str, Rates]
    worst_tenth: Rates
    thresholds: Thresholds
    curves: dict[str, dict[str, float | list[float]]]
    by_value: dict[str, Rates]


class HardScores(TypedDict):
    """Scores of one descriptor under the hard protocol; see ``hard_summary``."""

    families: dict[str, Rates]
    seconds: NotRequired[float]


def papers_summary(
    pairs: Sequence[PairMatches], folds: Sequence[int], *, target: float
) -> PapersScores:
    """Summarise one descriptor under the papers' protocol.

    NNT thresholds are chosen on the core families of one half of the images and applied to the
    other half, both ways. There are two: the best matching score at a precision of at least
    ``target``, and the best F1.

    Args:
        folds: 0 or 1 for each pair, by image.
    Returns:
        families: by family, ``core`` (the papers' five) and ``all``: nn_precision, exact (share
        matched to the partner itself), nnt_precision and nnt_score at the target, f1_precision and
        f1_score at the best F1. worst_tenth of the core pairs. thresholds, curves, by_value.
    """
    target_kept, targets = _cross_fit(pairs, folds, target)
    f1_kept, f1s = _cross_fit(pairs, folds, None)
    families = {}
    for family in (*FAMILIES, "core", "all"):
        rows = [i for i, pair in enumerate(pairs) if in_family(pair.family, family)]
        if rows:
            families[family] = _rates(pairs, rows, target_kept, f1_kept)
    core = [i for i, pair in enumerate(pairs) if pair.family in CORE_FAMILIES]
    image_rates = [_rates(pairs, [i], target_kept, f1_kept) for i in core]
    keys = ("nn_precision", "exact", "nnt_precision", "nnt_score", "f1_score")
    return {
        "families": families,
        "worst_tenth": {
            key: _round(worst_tenth([row[key] for row in image_rates])) for key in keys
        },
        "thresholds": {
            "target": [t.distance for t in targets],
            "target_reached": [t.reached for t in targets],
            "f1": [t.distance for t in f1s],
        },
        "curves": {
            family: curve_of([p for p in pairs if in_family(p.family, family)])
            for family in ("viewpoint", "core")
            if family in families
        },
        "by_value": _rates_by_value(pairs),
    }


def in_family(family: str, group: str) -> bool:
    """Return whether a pair's family belongs to a family or group (``core``, ``all``)."""
    return group in {"all", family} or (group == "core" and family in CORE_FAMILIES)


def curve_of(pairs: Sequence[PairMatches]) -> dict[str, float | list[float]]:
    """Recall against 1 - precision over all pairs, thinned, with its area and two readings."""
    _, wrong, recall = recall_curve(*pooled(pairs))
    if not len(recall):
        return {"one_minus_precision": [], "recall": [], "area": 0.0}
    thin = np.unique(np.linspace(0, len(recall) - 1, CURVE_POINTS).round().astype(int))
    readings = {
        f"recall_at_{share:g}": _round(float(recall[wrong <= share].max(initial=0.0)))
        for share in RECALL_AT_WRONG
    }
    return {
        "one_minus_precision": [_round(float(v)) for v in wrong[thin]],
        "recall": [_round(float(v)) for v in recall[thin]],
        "area": _round(area_under_curve(wrong, recall)),
        **readings,
    }


def hard_summary(scores: Sequence[HardScore]) -> HardScores:
    """Summarise precision and right matches under the hard protocol.

    Returns:
        families: by family, ``core`` and ``all``: precision (right within 3 px / matches), right
        (mean per pair), under_1px (share of matches), the same of mutual neighbours only (raw_),
        worst_right (mean of the worst tenth of pairs).
    """
    families = {}
    for family in (*FAMILIES, "core", "all"):
        rows = [score for score in scores if in_family(score.family, family)]
        if not rows:
            continue
        matches, raw = sum(r.matches for r in rows), sum(r.raw_matches for r in rows)
        families[family] = {
            "pairs": len(rows),
            "precision": _round(precision(sum(r.right for r in rows), matches)),
            "right": _round(float(np.mean([r.right for r in rows]))),
            "worst_right": _round(worst_tenth([r.right for r in rows])),
            "under_1px": _round(precision(sum(r.close for r in rows), matches)),
            "raw_precision": _round(precision(sum(r.raw_right for r in rows), raw)),
            "raw_right": _round(float(np.mean([r.raw_right for r in rows]))),
        }
    return {"families": families}


def count_summary(
    unrelated: Sequence[CountScore], related: Sequence[CountScore]
) -> dict[str, Rates]:
    """Totals over unrelated pairs, and means over related ones."""
    result: dict[str, Rates] = {}
    keys = ("matches", "inliers", "planar", "raw_matches", "raw_inliers", "raw_planar")
    for name, rows, aggregate in (("unrelated", unrelated, np.sum), ("related", related, np.mean)):
        if rows:
            values = {key: float(aggregate([getattr(row, key) for row in rows])) for key in keys}
            result[name] = {"pairs": len(rows)} | {k: _round(v) for k, v in values.items()}
    return result


def _cross_fit(
    pairs: Sequence[PairMatches], folds: Sequence[int], target: float | None
) -> tuple[list[np.ndarray], tuple[Threshold, Threshold]]:
    """Neighbours of each pair that pass the threshold of the other half of the images."""
    thresholds = []
    for fold in (0, 1):
        other_pairs = [
            pair
            for pair, pair_fold in zip(pairs, folds, strict=True)
            if pair_fold != fold and pair.family in CORE_FAMILIES
        ]
        thresholds.append(choose_threshold(other_pairs or pairs, target=target))
    below_threshold = [
        pair.distance < np.float32(thresholds[pair_fold].distance)
        for pair, pair_fold in zip(pairs, folds, strict=True)
    ]
    return below_threshold, (thresholds[0], thresholds[1])


def _rates(
    pairs: Sequence[PairMatches],
    rows: Sequence[int],
    target_kept: Sequence[np.ndarray],
    f1_kept: Sequence[np.ndarray],
) -> Rates:
    partners = sum(pairs[i].partners for i in rows)
    match_count = sum(len(pairs[i].distance) for i in rows)
    right = sum(int(pairs[i].is_right.sum()) for i in rows)
    result = {
        "partners": partners,
        "nn_precision": precision(right, match_count),
        "nn_score": matching_score(right, partners),
        "exact": matching_score(sum(int(pairs[i].is_exact.sum()) for i in rows), partners),
    }
    for prefix, is_kept in (("nnt", target_kept), ("f1", f1_kept)):
        kept_right = sum(int((pairs[i].is_right & is_kept[i]).sum()) for i in rows)
        result[f"{prefix}_precision"] = precision(
            kept_right, sum(int(is_kept[i].sum()) for i in rows)
        )
        result[f"{prefix}_score"] = matching_score(kept_right, partners)
    return {key: _round(value) for key, value in result.items()}


def _rates_by_value(pairs: Sequence[PairMatches]) -> dict[str, Rates]:
    """NN precision of each value of each family (figure 4 of graph-ssl)."""
    table: dict[str, Rates] = {}
    for family in FAMILIES:
        for value in sorted({pair.value for pair in pairs if pair.family == family}):
            rows = [p for p in pairs if p.family == family and p.value == value]
            right = sum(int(p.is_right.sum()) for p in rows)
            match_count = sum(len(p.distance) for p in rows)
            table.setdefault(family, {})[f"{value:g}"] = _round(precision(right, match_count))
    return table


def _round(value: float) -> float:
    return round(float(value), 4)
