"""Number of false alarms: hand-worked values and simulation."""

from __future__ import annotations

import math

import numpy as np

from ml.keypoints.verification.a_contrario import log10_false_alarms


def test_the_number_of_false_alarms_equals_a_hand_worked_value() -> None:
    # 3 (8 - 3) C(8, 5) C(5, 3) 0.01^2
    expected = 3 * 5 * math.comb(8, 5) * math.comb(5, 3) * 0.01**2
    log10_count = log10_false_alarms(5, 8, sample=3, share=0.01, models=3.0)
    np.testing.assert_allclose(log10_count, math.log10(expected))


def test_only_the_sample_is_not_meaningful() -> None:
    log10_count = log10_false_alarms([0, 2, 3], [10, 10, 10], sample=3, share=0.01)
    assert np.isinf(log10_count).all()


def test_false_alarms_fall_with_agreement_and_rise_with_chance() -> None:
    by_count = log10_false_alarms(np.arange(6, 20), 20, sample=3, share=0.05)
    assert (np.diff(by_count) < 0).all()
    by_share = log10_false_alarms(10, 20, sample=3, share=[0.001, 0.01, 0.1])
    assert (np.diff(by_share) > 0).all()


def test_random_partners_have_fewer_alarms_than_the_bound() -> None:
    rng = np.random.default_rng(0)
    share, n, trials = 0.05, 30, 4000
    agreeing = 2 + rng.binomial(n - 2, share, trials)  # a sample of two fixes a shift's support
    log_nfa = log10_false_alarms(agreeing, np.full(trials, n), sample=2, share=share)
    assert (log_nfa < 0).mean() < 0.01
