"""What is kept of an image changes no match, and nothing is kept of another one."""

from __future__ import annotations

import numpy as np
import pytest

from ml.evaluation.common.sides import SideCache, seconds_a_pair
from ml.imaging.samples import packaged_image
from ml.keypoints import DetectorConfig, load_descriptor, match_images, pipeline
from ml.keypoints.pipeline import match_keypoints
from ml.keypoints.views import make_view


def _view(x: int) -> np.ndarray:
    return np.ascontiguousarray(packaged_image("retina.jpg")[400:640, x : x + 300])


def test_matches_are_those_of_match_images() -> None:
    a, b, c = _view(400), _view(412), _view(430)
    cache = SideCache()
    for one, two in ((a, b), (a, c), (b, c), (a, b)):
        kept = cache.match((one, None), (two, None), "orb", 200)
        fresh = match_images(one, two, "orb", max_keypoints=200)
        np.testing.assert_array_equal(kept.xy_a, fresh.xy_a)
        np.testing.assert_array_equal(kept.xy_b, fresh.xy_b)
    assert len(cache._sides) == 3


def test_the_pipeline_is_left_as_it_was_even_after_an_error() -> None:
    before = pipeline._side
    with pytest.raises(ZeroDivisionError), SideCache().in_use():
        assert pipeline._side is not before
        raise ZeroDivisionError
    assert pipeline._side is before


def test_mutual_neighbours_are_the_first_stage() -> None:
    a, b = _view(400), _view(412)
    orb = load_descriptor("orb")
    found = SideCache().mutual((a, None), (b, None), orb, keypoints=200, ratio=orb.ratio)
    views = [make_view(image) for image in (a, b)]
    config = DetectorConfig(name="orb", max_keypoints=200)
    sides = [pipeline._side(view, orb, config) for view in views]
    slow = match_keypoints(orb, views[0].image, sides[0].points, views[1].image, sides[1].points)
    np.testing.assert_allclose(found.xy_a, views[0].to_image(slow.xy_a))
    np.testing.assert_allclose(found.xy_b, views[1].to_image(slow.xy_b))


def test_no_pair_takes_no_time() -> None:
    assert np.isnan(seconds_a_pair([], "orb", 100))
    assert seconds_a_pair([((_view(400), None), (_view(410), None))], "orb", 50) > 0
