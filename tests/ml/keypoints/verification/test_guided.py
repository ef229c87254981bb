"""Guided matching near predicted positions."""

from __future__ import annotations

import numpy as np

from ml.keypoints.verification.guided import guided_matches


def _rows(*values: float) -> np.ndarray:
    return np.array([[np.cos(v), np.sin(v)] for v in values], np.float32)


def test_distant_candidates_are_ignored() -> None:
    # row 1 of b is nearer in descriptor space, but 100 px off the predicted position
    xy_b = np.array([[10, 10], [110, 10]], np.float32)
    pairs, distance = guided_matches(
        _rows(0.0),
        _rows(0.2, 0.01),
        xy_b,
        np.array([[11.0, 10.0]]),
        np.array([4.0]),
        ratio=0.9,
        max_distance=1.0,
    )
    assert pairs.tolist() == [[0, 0]]
    np.testing.assert_allclose(distance, 2 * np.sin(0.1), atol=1e-6)


def test_the_ratio_rejects_similar_candidates_within_the_radius() -> None:
    xy_b = np.array([[10, 10], [12, 10]], np.float32)
    args = (_rows(0.0), _rows(0.2, 0.21), xy_b, np.array([[11.0, 10.0]]), np.array([4.0]))
    assert len(guided_matches(*args, ratio=0.9, max_distance=1.0)[0]) == 0
    assert len(guided_matches(*args, ratio=0.99, max_distance=1.0)[0]) == 1
    assert len(guided_matches(*args, ratio=0.99, max_distance=0.1)[0]) == 0


def test_each_key_point_of_b_is_matched_at_most_once() -> None:
    xy_b = np.array([[10, 10]], np.float32)
    predicted, radius = np.array([[10.0, 10], [11, 10]]), np.array([4.0, 4.0])
    pairs, _ = guided_matches(
        _rows(0.3, 0.1), _rows(0.0), xy_b, predicted, radius, ratio=1.0, max_distance=1.0
    )
    assert pairs.tolist() == [[1, 0]]


def test_rows_without_a_descriptor_never_match() -> None:
    xy_b = np.array([[10, 10]], np.float32)
    zero = np.zeros((1, 2), np.float32)
    for a, b in ((zero, _rows(0.0)), (_rows(0.0), zero), (zero[:0], _rows(0.0))):
        predicted = np.full((len(a), 2), 10.0)
        matches = guided_matches(
            a, b, xy_b, predicted, np.full(len(a), 4.0), ratio=1.0, max_distance=9
        )
        assert len(matches[0]) == 0
