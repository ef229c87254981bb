from __future__ import annotations

import numpy as np
import pytest

from ml.index.ranking.conformal_bound import MIN_SAMPLES, conformal_bound, nearest_elsewhere


def test_nearest_of_other_places_excludes_the_same_place() -> None:
    vectors = np.array([[0, 0], [0.1, 0], [3, 4]], np.float32)
    elsewhere = np.array([[False, False, True], [False, False, True], [False, False, False]])
    distances = nearest_elsewhere(vectors, elsewhere)
    assert distances == pytest.approx([5, np.hypot(2.9, 4), np.inf])


def test_the_bound_has_the_rank_of_the_false_share() -> None:
    distances = np.arange(1.0, 100.0)  # 99: the 95th smallest of 99
    assert conformal_bound(distances[::-1]) == 95
    assert conformal_bound(distances, false_share=0.5) == 50


def test_too_few_or_infinite_distances_give_no_bound() -> None:
    assert conformal_bound(np.arange(MIN_SAMPLES - 1.0)) is None
    assert conformal_bound(np.full(MIN_SAMPLES + 5, np.inf)) is None
    assert conformal_bound(np.arange(float(MIN_SAMPLES))) == MIN_SAMPLES - 2


def test_another_sample_exceeds_the_bound_with_the_stated_probability() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 60))
    beyond = [draw[-1] > (conformal_bound(draw[:-1]) or 0) for draw in draws]
    assert np.mean(beyond) == pytest.approx(0.05, abs=0.01)
