from __future__ import annotations

import numpy as np
import pytest

from ml.index.answers.own_tissue import FEWEST, nearest_elsewhere, own_bound


def test_the_nearest_elsewhere_leaves_the_same_place_out() -> None:
    vectors = np.array([[0, 0], [0.1, 0], [3, 4]], np.float32)
    elsewhere = np.array([[False, False, True], [False, False, True], [False, False, False]])
    found = nearest_elsewhere(vectors, elsewhere)
    assert found == pytest.approx([5, np.hypot(2.9, 4), np.inf])


def test_the_bound_is_the_rank_that_the_share_asks_for() -> None:
    distances = np.arange(1.0, 100.0)  # 99: the 95th smallest of 99
    assert own_bound(distances[::-1]) == 95
    assert own_bound(distances, false_share=0.5) == 50


def test_too_few_or_infinite_distances_give_no_bound() -> None:
    assert own_bound(np.arange(FEWEST - 1.0)) is None
    assert own_bound(np.full(FEWEST + 5, np.inf)) is None
    assert own_bound(np.arange(float(FEWEST))) == FEWEST - 2


def test_one_more_of_the_same_lies_beyond_as_often_as_is_said() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 60))
    beyond = [draw[-1] > (own_bound(draw[:-1]) or 0) for draw in draws]
    assert np.mean(beyond) == pytest.approx(0.05, abs=0.01)
