"""Re-ranking of regions by matches of key points."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import box

from ml.keypoints.descriptors.tessera import load
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig
from ml.roi.keypoints.rerank import FIRST, region_features, rerank


@pytest.fixture(scope="module")
def features(mucosa):
    """``features(seed, left)``: key points of a region of a tissue."""
    config = KeypointEncoderConfig(vlad=VladConfig(words=2, out_dim=4))
    encoder = KeypointEncoder(
        name="views",
        version="1",
        config_hash="",
        config=config,
        network=Vlad(config.vlad),
        descriptor=load(),
    )

    def of(seed, left=60):
        image = mucosa(300, 320, seed=seed)
        return region_features(encoder.view_of_image(image, box(left, 60, left + 160, 220)))

    return of


def test_the_true_match_is_first_and_others_are_ordered_by_distance(features):
    candidates = [features(seed) for seed in (5, 6, 7)]
    candidates.insert(2, features(1, left=72))
    distance = np.array([0.3, 0.1, 0.9, 0.2], np.float32)
    order, matches = rerank(features(1), candidates, distance)
    assert order.tolist() == [2, 1, 3, 0] and order.dtype == np.int64
    assert matches[2] >= 8 and matches[[0, 1, 3]].max() == 0


def test_only_the_nearest_candidates_are_matched(features, monkeypatch):
    matched = []

    class Nothing:
        score = ()

    def match(query, candidate):
        matched.append(candidate)
        return Nothing

    monkeypatch.setattr("ml.roi.keypoints.rerank.match_features", match)
    distance = np.arange(FIRST + 20, dtype=np.float32)[::-1].copy()
    order, matches = rerank("query", list(range(len(distance))), distance)
    assert sorted(matched) == list(range(20, FIRST + 20))
    assert np.array_equal(order, np.argsort(distance)) and not matches.any()


def test_no_candidates_give_an_empty_order(features):
    order, matches = rerank(features(1), [], np.zeros(0, np.float32))
    assert order.shape == matches.shape == (0,)


def test_key_points_are_inside_the_region(features):
    expected = features(2)
    assert len(expected.keypoints.xy) > 20
    assert expected.keypoints.xy.min() > 15
