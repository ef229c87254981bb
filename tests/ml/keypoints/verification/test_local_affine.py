"""Local consistency: right matches among many wrong ones, several motions, and pure chance."""

from __future__ import annotations

import numpy as np
import pytest

from ml.keypoints.verification.local_affine import consistent_matches

AREA = (400.0 * 400.0, 400.0 * 400.0)


def _scene(right: int, wrong: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    xy_a = rng.uniform(0, 400, (right + wrong, 2))
    xy_b = xy_a @ np.array([[0.95, 0.12], [-0.12, 0.95]]) + (10, 20)
    xy_b[right:] = rng.uniform(0, 400, (wrong, 2))
    score = rng.uniform(0, 1, right + wrong)
    return xy_a.astype("f4"), xy_b.astype("f4"), score.astype("f4")


@pytest.mark.parametrize(("right", "wrong"), [(150, 0), (150, 150), (100, 250)])
def test_correct_matches_are_accepted_and_wrong_ones_rejected(right: int, wrong: int) -> None:
    keep = consistent_matches(*_scene(right, wrong), area_px=AREA)
    assert keep[:right].mean() > 0.9
    assert keep[right:].sum() <= 0.03 * max(wrong, 1)


def test_two_adjacent_motions_are_accepted() -> None:
    xy_a, xy_b, score = _scene(200, 60)
    left = np.flatnonzero(xy_a[:200, 0] < 200)
    xy_b[left] = xy_a[left] + np.float32((-30, 5))
    keep = consistent_matches(xy_a, xy_b, score, area_px=AREA)
    assert keep[left].mean() > 0.85
    assert keep[np.setdiff1d(np.arange(200), left)].mean() > 0.85


def test_random_matches_are_rejected() -> None:
    for seed in range(5):
        keep = consistent_matches(*_scene(0, 300, seed), area_px=AREA)
        assert keep.sum() <= 6


def test_the_result_is_deterministic() -> None:
    scene = _scene(80, 200)
    first = consistent_matches(*scene, area_px=AREA)
    np.testing.assert_array_equal(first, consistent_matches(*scene, area_px=AREA))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_matches_are_rejected(n: int) -> None:
    assert consistent_matches(*_scene(n, 0), area_px=AREA).sum() == 0


def test_a_mirrored_scene_is_rejected() -> None:
    xy_a, _, score = _scene(150, 0)
    xy_b = xy_a.copy()
    xy_b[:, 0] = 400 - xy_b[:, 0]
    assert consistent_matches(xy_a, xy_b, score, area_px=AREA).sum() == 0
