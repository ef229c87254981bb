"""Metrics against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.evaluation.retrieval.metrics import (
    average_precision_at_k,
    average_precision_by_hits,
    bootstrap_interval,
    macro_bootstrap,
    macro_mean,
    majority_vote,
    precision_at_k,
)

LIST = np.array([True, False, True, False, False, True])


def test_average_precision_equals_a_hand_worked_value():
    # precision at the hits: 1/1, 2/3, 3/6
    assert average_precision_at_k(LIST, k=6, n_relevant=4) == pytest.approx((1 + 2 / 3 + 0.5) / 4)
    assert average_precision_at_k(LIST, k=3, n_relevant=4) == pytest.approx((1 + 2 / 3) / 3)
    assert average_precision_by_hits(LIST, k=6) == pytest.approx((1 + 2 / 3 + 0.5) / 3)


def test_a_perfect_list_scores_one_for_any_number_of_relevant_regions():
    for relevant in (1, 4, 30):
        ranked = np.arange(40) < relevant
        assert average_precision_at_k(ranked, k=10, n_relevant=relevant) == pytest.approx(1)


def test_no_hit_scores_zero_in_both_definitions():
    ranked = np.zeros(10, bool)
    assert average_precision_at_k(ranked, k=5, n_relevant=3) == 0
    assert average_precision_by_hits(ranked, k=5) == 0


def test_average_precision_by_hits_rewards_a_single_hit():
    ranked = np.arange(20) == 0
    assert average_precision_by_hits(ranked, k=10) == 1
    assert average_precision_at_k(ranked, k=10, n_relevant=10) == pytest.approx(0.1)


def test_a_gallery_without_relevant_regions_raises_an_error():
    with pytest.raises(ShapeError, match=r"n_relevant: .*0"):
        average_precision_at_k(LIST, k=3, n_relevant=0)


def test_precision_and_vote_equal_hand_worked_values():
    assert precision_at_k(LIST, k=5) == pytest.approx(0.4)
    assert majority_vote(["b", "a", "a", "b", "c"]) == "b"
    assert majority_vote(["c", "a", "a"]) == "a"


def test_the_interval_resamples_patients():
    values = np.array([0.0] * 50 + [1.0] * 50)
    few = bootstrap_interval(values, ["p1"] * 50 + ["p2"] * 50)
    many = bootstrap_interval(values, [str(i) for i in range(100)])
    assert few == (0.0, 1.0)
    assert 0.35 < many[0] < 0.5 < many[1] < 0.65
    assert many == bootstrap_interval(values, [str(i) for i in range(100)])


def test_the_macro_mean_gives_each_class_the_same_weight():
    values = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    assert macro_mean(values, ["a", "a", "a", "a", "b"]) == pytest.approx((0.25 + 1) / 2)


def test_the_macro_bootstrap_resamples_patients_and_not_queries():
    # two patients, both classes of each: three outcomes, 0 (p twice), 1 (q twice) or between
    values = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    labels, patients = ["a", "a", "b", "a", "b"], ["p", "p", "p", "q", "q"]
    interval = macro_bootstrap(values, labels, patients, repeats=400, seed=0)
    both = (1 / 3 + 1 / 2) / 2
    assert set(np.round(interval, 9).tolist()) == {0.0, 1.0, round(both, 9)}
    assert (interval == 0).mean() == pytest.approx(0.25, abs=0.07)
    assert np.array_equal(interval, macro_bootstrap(values, labels, patients, repeats=400, seed=0))


def test_a_class_without_drawn_patients_does_not_count():
    interval = macro_bootstrap(np.array([0.2, 0.8]), ["a", "b"], ["p", "q"], repeats=200, seed=0)
    assert set(np.round(interval, 9).tolist()) == {0.2, 0.5, 0.8}
