"""Cached features give the same matches."""

from __future__ import annotations

import numpy as np

from ml.evaluation.common.features import FeatureCache, seconds_a_pair
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints import load_descriptor, match_images
from ml.keypoints.features import extract
from ml.keypoints.pipeline import match_keypoints


def _view(x: int) -> np.ndarray:
    return np.ascontiguousarray(packaged_image("retina.jpg")[400:640, x : x + 300])


def test_cached_matches_equal_those_of_match_images() -> None:
    a, b, c = _view(400), _view(412), _view(430)
    cache = FeatureCache()
    for first, two in ((a, b), (a, c), (b, c), (a, b)):
        cached = cache.match((first, None), (two, None), "orb", 200)
        fresh = match_images(first, two, "orb", max_keypoints=200)
        np.testing.assert_array_equal(cached.xy_a, fresh.xy_a)
        np.testing.assert_array_equal(cached.xy_b, fresh.xy_b)
        np.testing.assert_array_equal(cached.score, fresh.score)
    assert len(cache._features) == 3


def test_the_cache_depends_on_mask_descriptor_and_number_of_key_points() -> None:
    image, cache = _view(400), FeatureCache()
    orb, sift = load_descriptor("orb"), load_descriptor("sift")
    mask = np.zeros(image.shape[:2], np.uint8)
    mask[40:200, 40:200] = 255
    first = cache.extract((image, None), orb, 200)
    assert cache.extract((image.copy(), None), orb, 200) is first
    others = [
        cache.extract((image, mask), orb, 200),
        cache.extract((image, None), sift, 200),
        cache.extract((image, None), orb, 100),
    ]
    assert len({id(features) for features in (first, *others)}) == 4
    assert (others[0].xy > 39).all()


def test_cached_mutual_neighbours_equal_those_of_the_matcher() -> None:
    a, b = _view(400), _view(412)
    orb = load_descriptor("orb")
    matches = FeatureCache().mutual((a, None), (b, None), orb, keypoints=200, ratio=orb.ratio)
    first, two = (extract(image, descriptor=orb, max_keypoints=200) for image in (a, b))
    slow = match_keypoints(orb, first.view.image, first.keypoints, two.view.image, two.keypoints)
    np.testing.assert_allclose(matches.xy_a, first.view.to_image(slow.xy_a))
    np.testing.assert_allclose(matches.xy_b, two.view.to_image(slow.xy_b))


def test_the_time_per_pair_is_undefined_without_pairs() -> None:
    assert np.isnan(seconds_a_pair([], "orb", 100))
    assert seconds_a_pair([((_view(400), None), (_view(410), None))], "orb", 50) > 0
