"""Few matches, matches in one corner and matches of what stands still tell of no scene."""

from __future__ import annotations

import numpy as np
import pytest

from ml.keypoints import ImageFeatures, extract
from ml.keypoints.credibility import covered_cells, is_credible, is_of_the_scene


@pytest.fixture(scope="module")
def features(vessels: np.ndarray) -> ImageFeatures:
    whole = np.full(vessels.shape[:2], 255, np.uint8)
    return extract(vessels, descriptor="orb", max_keypoints=400, mask=whole)


def _spread(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform((20, 20), (440, 320), (count, 2)).astype(np.float32)


def test_a_dozen_matches_all_over_are_credible_and_eleven_are_not(features: ImageFeatures) -> None:
    xy = _spread(12)
    assert is_credible(features, features, xy, xy + 9)
    assert not is_credible(features, features, xy[:11], xy[:11] + 9)
    assert not is_credible(features, features, xy[:0], xy[:0])


def test_matches_in_one_corner_are_not_credible(features: ImageFeatures) -> None:
    corner = 100 + _spread(60) / 20
    assert not is_credible(features, features, corner, _spread(60))
    assert not is_credible(features, features, _spread(60), corner)


def test_where_nothing_moves_a_large_part_of_the_key_points_must_match(
    features: ImageFeatures,
) -> None:
    few = _spread(20)
    assert is_credible(features, features, few, few + 3)
    assert not is_credible(features, features, few, few)
    assert is_credible(features, features, features.keypoints.xy, features.keypoints.xy)


def test_what_stands_still_while_most_moves_is_not_of_the_scene() -> None:
    xy, moved = _spread(60), _spread(60) + 8
    moved[:10] = xy[:10]
    assert is_of_the_scene(xy, moved).tolist() == [False] * 10 + [True] * 50
    assert is_of_the_scene(xy, xy).all(), "nothing moves"
    moved[:40] = xy[:40]
    assert is_of_the_scene(xy, moved).all(), "most stand still"
    assert is_of_the_scene(xy[:0], xy[:0]).shape == (0,)


def test_cells_are_counted_once_each() -> None:
    xy = np.array([[0, 0], [9, 9], [11, 0], [159, 159.0]])
    assert covered_cells(xy, (160, 160)) == 3
    assert covered_cells(np.zeros((0, 2)), (160, 160)) == 0
