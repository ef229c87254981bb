"""Credibility of matches by number, spread and motion."""

from __future__ import annotations

import numpy as np
import pytest

from ml.keypoints.credibility import (
    covered_cells,
    has_fixed_pattern,
    is_credible,
    is_slow,
    is_tissue_still,
    moves_with_scene,
)
from ml.keypoints.features import ImageFeatures, extract


@pytest.fixture(scope="module")
def features(vessels: np.ndarray) -> ImageFeatures:
    mask = np.full(vessels.shape[:2], 255, np.uint8)
    return extract(vessels, descriptor="orb", max_keypoints=400, mask=mask)


def _spread(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform((20, 20), (440, 320), (count, 2)).astype(np.float32)


def test_twelve_spread_matches_are_credible_and_eleven_are_not(features: ImageFeatures) -> None:
    xy = _spread(12)
    assert is_credible(features, features, xy, xy + 9)
    assert not is_credible(features, features, xy[:11], xy[:11] + 9)
    assert not is_credible(features, features, xy[:0], xy[:0])


def test_matches_in_one_corner_are_not_credible(features: ImageFeatures) -> None:
    corner = 100 + _spread(60) / 20
    assert not is_credible(features, features, corner, _spread(60))
    assert not is_credible(features, features, _spread(60), corner)


def test_without_motion_a_large_share_of_key_points_must_match(
    features: ImageFeatures,
) -> None:
    few = _spread(20)
    assert is_credible(features, features, few, few + 3)
    assert not is_credible(features, features, few, few)
    assert is_credible(features, features, features.keypoints.xy, features.keypoints.xy)


def test_slow_matches_are_those_of_a_pattern_unless_the_tissue_is_still(
    vessels: np.ndarray, features: ImageFeatures
) -> None:
    """A quarter of the light and other noise change nothing; motion of the tissue does."""
    mask = np.full(vessels.shape[:2], 255, np.uint8)
    noise = np.random.default_rng(1).normal(0, 2, vessels.shape)
    xy = features.keypoints.xy
    for shift, is_still in ((0, True), (1, True), (9, False), (30, False)):
        dark = np.clip(np.roll(vessels, shift, axis=1) * 0.25 + noise, 0, 255).astype(np.uint8)
        other = extract(dark, descriptor="orb", max_keypoints=50, mask=mask)
        assert is_tissue_still(features, other, xy, xy) is is_still
        assert has_fixed_pattern(features, other, xy, xy + 1) is not is_still
        assert not has_fixed_pattern(features, other, xy[:0], xy[:0])


def test_a_few_slow_matches_are_not_tested(vessels: np.ndarray, features: ImageFeatures) -> None:
    """About the centre of a rotation or of a change of scale, tissue hardly moves."""
    mask = np.full(vessels.shape[:2], 255, np.uint8)
    moved_vessels = np.roll(vessels, 16, axis=1)
    other = extract(moved_vessels, descriptor="orb", max_keypoints=50, mask=mask)
    xy = _spread(60)
    moved = xy + np.array([16, 0], np.float32)
    moved[:20] = xy[:20] + 1
    assert is_slow(features, other, xy, moved).tolist() == [True] * 20 + [False] * 40
    assert has_fixed_pattern(features, other, xy, moved)
    moved[10:20] = xy[10:20]
    moved[10:20, 0] += 16
    assert not has_fixed_pattern(features, other, xy, moved)


def test_static_points_in_a_moving_scene_are_rejected() -> None:
    xy, moved = _spread(60), _spread(60) + 8
    moved[:10] = xy[:10]
    assert moves_with_scene(xy, moved).tolist() == [False] * 10 + [True] * 50
    assert moves_with_scene(xy, xy).all(), "nothing moves"
    moved[:40] = xy[:40]
    assert moves_with_scene(xy, moved).all(), "most points are static"
    assert moves_with_scene(xy[:0], xy[:0]).shape == (0,)


def test_covered_cells_are_counted() -> None:
    xy = np.array([[0, 0], [9, 9], [11, 0], [159, 159.0]])
    assert covered_cells(xy, (160, 160)) == 3
    assert covered_cells(np.zeros((0, 2)), (160, 160)) == 0
