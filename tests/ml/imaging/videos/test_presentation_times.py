"""Times that ascend, from stamps that do not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ml.imaging.videos.presentation_times import ClockRules, presentation_times, usual_step

RULES = ClockRules(wrap=0, jump=1_000, step=10)
WRAPPING = ClockRules(wrap=2**33, jump=900_000, step=3_600)


@pytest.mark.parametrize(
    ("stamps", "times", "restarts"),
    [
        pytest.param([5, 15, 40, 50], [5, 15, 40, 50], 0, id="ascending stamps stay"),
        pytest.param([0, 10, 20, 30, 0, 10], [0, 10, 20, 30, 40, 50], 1, id="restart"),
        pytest.param(
            [0, 10, 20, 30, 0, 10, 20, 35, 5, 15],
            [0, 10, 20, 30, 40, 50, 60, 75, 85, 95],
            2,
            id="two restarts",
        ),
        pytest.param([0, 10, 5_000, 5_010], [0, 10, 20, 30], 1, id="jump forward"),
        pytest.param([0, 10, 900, 910], [0, 10, 900, 910], 0, id="a pause is no jump"),
        pytest.param([0, 10, 10, 30], [0, 10, 20, 30], 0, id="repeated stamp"),
        pytest.param([7, 7, 7], [7, 17, 27], 0, id="one stamp for all"),
        pytest.param([0, None, 20, None], [0, 10, 20, 30], 0, id="missing stamps"),
        pytest.param([None, None, 20], [0, 10, 20], 0, id="missing at the start"),
        pytest.param([None, None], [0, 10], 0, id="none at all"),
        pytest.param([0, 20, 10, 40], [0, 20, 30, 40], 0, id="out of order"),
        pytest.param([-20, -10, 0], [-20, -10, 0], 0, id="negative stamps stay"),
        pytest.param([], [], 0, id="no frames"),
    ],
)
def test_times_equal_hand_worked_values(
    stamps: list[int | None], times: list[int], restarts: int
) -> None:
    pts, count = presentation_times(stamps, RULES)
    assert (pts.tolist(), count) == (times, restarts)


def test_a_clock_that_wraps_continues() -> None:
    start = 2**33 - 5_000
    stamps = [(start + 3_600 * n) % 2**33 for n in range(10)]
    pts, restarts = presentation_times(stamps, WRAPPING)
    assert pts.tolist() == [start + 3_600 * n for n in range(10)]
    assert restarts == 0


@pytest.mark.parametrize("largest", [2**40, 2**62, 2**63 - 1])
def test_any_time_stamps_give_ascending_times(largest: int) -> None:
    rng = np.random.default_rng(3)
    for rules in (RULES, WRAPPING):
        stamps = [
            None if rng.random() < 0.2 else int(rng.integers(-largest, largest)) for _ in range(500)
        ]
        pts, _ = presentation_times(stamps, rules)
        assert len(pts) == 500
        assert all(before < after for before, after in pairwise(pts.tolist()))


def test_the_usual_step_is_the_median_of_positive_steps() -> None:
    assert usual_step([0, 10, 20, None, 30, 0, 10, 200]) == 10
    assert usual_step([5, 5]) == 1
    assert usual_step([]) == 1
