"""Metrics of matching by hand, against slow versions, and of empty input."""

from __future__ import annotations

import numpy as np
import pytest

from ml.evaluation.matching.metrics import (
    PairMatches,
    area_under_curve,
    choose_threshold,
    fundamental_error,
    matching_score,
    pose_auc,
    precision,
    recall_curve,
    worst_tenth,
)
from ml.evaluation.matching.scores import curve_of, papers_summary


def _pair(distance: list[float], right: list[int], partners: int, **more: object) -> PairMatches:
    is_right = np.array(right, bool)
    values: dict[str, object] = {"family": "rotation", "value": 5.0, "is_exact": is_right} | more
    return PairMatches(
        partners=partners,
        distance=np.array(distance, np.float32),
        is_right=is_right,
        **values,  # type: ignore[arg-type]
    )


def test_precision_and_matching_score_equal_hand_worked_values() -> None:
    """Eq. 17: 3 of 4 matches are right; 3 of 6 key points with a partner are matched right."""
    assert precision(3, 4) == 0.75
    assert matching_score(3, 6) == 0.5
    assert np.isnan(precision(0, 0))
    assert np.isnan(matching_score(0, 0))


def test_recall_and_one_minus_precision_equal_hand_worked_values() -> None:
    distance = np.array([0.3, 0.1, 0.2, 0.2, 0.9], np.float32)
    right = np.array([True, True, True, False, False])
    level, wrong, recall = recall_curve(distance, right, 5)
    np.testing.assert_allclose(level, [0.1, 0.2, 0.3, 0.9], atol=1e-6)
    np.testing.assert_allclose(wrong, [0, 1 / 3, 1 / 4, 2 / 5])
    np.testing.assert_allclose(recall, [0.2, 0.4, 0.6, 0.6])


def test_the_curve_agrees_with_a_count_at_every_threshold() -> None:
    rng = np.random.default_rng(0)
    distance = rng.integers(0, 20, 200).astype(np.float32) / 20
    right = rng.random(200) < 0.6
    for level, wrong, recall in zip(*recall_curve(distance, right, 250), strict=True):
        is_below = distance <= level
        assert wrong == pytest.approx(1 - right[is_below].mean())
        assert recall == pytest.approx(right[is_below].sum() / 250)


def test_without_matches_the_curve_is_empty() -> None:
    empty = _pair([], [], 0)
    assert [len(v) for v in recall_curve(empty.distance, empty.is_right, 0)] == [0, 0, 0]
    assert choose_threshold([empty], target=0.9).distance == 0.0
    assert choose_threshold([], target=None).distance == 0.0
    assert curve_of([empty]) == {"one_minus_precision": [], "recall": [], "area": 0.0}
    assert np.isnan(worst_tenth([]))


def test_the_area_uses_the_best_recall_so_far() -> None:
    """Recall .5 from 0 on, .8 from .25 on: .25 * .5 + .75 * .8."""
    area = area_under_curve(np.array([0.0, 0.25]), np.array([0.5, 0.8]))
    assert area == pytest.approx(0.725)
    assert area_under_curve(np.array([0.0]), np.array([1.0])) == 1.0


def test_a_threshold_reaches_the_target_with_the_most_correct_matches() -> None:
    pair = _pair([0.1, 0.2, 0.3, 0.4, 0.5], [1, 1, 0, 1, 1], 5)
    exact = choose_threshold([pair], target=1.0)
    assert exact.reached
    assert 0.2 < exact.distance < 0.2001
    loose = choose_threshold([pair], target=0.8)
    assert 0.5 < loose.distance < 0.5001


def test_without_a_precise_threshold_the_best_f1_is_chosen() -> None:
    pair = _pair([0.1, 0.2, 0.3], [0, 1, 0], 3)
    chosen = choose_threshold([pair], target=0.9)
    assert not chosen.reached
    assert 0.2 < chosen.distance < 0.2001
    best = choose_threshold([_pair([0.1, 0.2, 0.3, 0.9], [1, 1, 1, 0], 4)], target=None)
    assert best.reached
    assert 0.3 < best.distance < 0.31


def test_the_worst_tenth_is_the_mean_of_at_least_one_pair() -> None:
    assert worst_tenth([0.9, 0.1, 0.5]) == pytest.approx(0.1)
    assert worst_tenth(list(np.arange(20) / 20)) == pytest.approx(0.025)
    assert worst_tenth([float("nan"), 0.5]) == 0.0


def test_thresholds_are_fitted_on_the_other_half_of_the_images() -> None:
    """Half 0 is clean up to .5, half 1 only up to .2: each is cut where the other one is clean."""
    clean = _pair([0.1, 0.3, 0.5], [1, 1, 1], 3)
    dirty = _pair([0.1, 0.3, 0.5], [1, 0, 0], 3)
    summary = papers_summary([clean, dirty], [0, 1], target=1.0)
    core = summary["families"]["core"]
    assert core["nn_precision"] == pytest.approx(4 / 6, abs=1e-4)
    # clean keeps .1 only (1 right of 1), dirty keeps all three (1 right of 3)
    assert core["nnt_precision"] == pytest.approx(2 / 4, abs=1e-4)
    assert core["nnt_score"] == pytest.approx(2 / 6, abs=1e-4)
    assert summary["by_value"] == {"rotation": {"5": pytest.approx(4 / 6, abs=1e-4)}}


def test_the_fundamental_error_is_invariant_to_scale_and_sign() -> None:
    """Eq. 18: between unit matrices of right angles to each other it is sqrt(2)."""
    a, b = np.zeros((3, 3)), np.zeros((3, 3))
    a[0, 1], b[2, 0] = 3.0, -0.5
    assert fundamental_error(a, b) == pytest.approx(np.sqrt(2))
    assert fundamental_error(a, -7 * a) == pytest.approx(0.0)
    half = a / 3 + b / 0.5  # 45 degrees from both: 2 sin(22.5 degrees)
    assert fundamental_error(half, a) == pytest.approx(2 * np.sin(np.pi / 8))


def test_auc_equals_a_hand_worked_value() -> None:
    assert pose_auc([0.0, 0.0], 10) == pytest.approx(1.0)
    assert pose_auc([90.0, 90.0], 10) == 0.0
    # recall rises linearly to 1/2 at 5 degrees and stays: 0.5 * 5 / 2 + 0.5 * 5
    assert pose_auc([5.0, 90.0], 10) == pytest.approx(0.375)
    assert np.isnan(pose_auc([], 10))
