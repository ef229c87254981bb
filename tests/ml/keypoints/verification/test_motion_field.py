"""The motion field of matches."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import NotEnoughMatchesError
from ml.keypoints.verification.motion_field import MotionField

LINEAR = np.array([[1.02, -0.1], [0.16, 0.95]])


def _affine(xy: np.ndarray) -> np.ndarray:
    return xy @ LINEAR.T + (5.0, -9.0)


def _points(n: int = 150) -> np.ndarray:
    return np.random.default_rng(3).uniform(0, 400, (n, 2))


def test_an_affine_motion_is_exact_everywhere() -> None:
    xy = _points()
    query_points = np.array([[10.0, 20], [399, 1], [900, -50]])
    sample = MotionField(xy, _affine(xy)).at(query_points)
    np.testing.assert_allclose(sample.xy_b, _affine(query_points), atol=1e-3)
    np.testing.assert_allclose(sample.jacobian, np.tile(LINEAR, (3, 1, 1)), atol=1e-4)
    np.testing.assert_allclose(sample.spread_px, 0, atol=1e-3)


def test_a_wrong_match_is_detected_only_with_leave_out() -> None:
    xy = _points()
    moved = _affine(xy)
    moved[7] += (30.0, -20.0)
    field = MotionField(xy, moved)
    error = np.hypot(*(field.at(xy, leave_out=True).xy_b - moved).T)
    assert error.argmax() == 7
    assert error[7] == pytest.approx(np.hypot(30, 20), abs=1.0)
    assert np.delete(error, 7).max() < 3.0


def test_a_curved_motion_is_predicted_better_than_by_an_affine_map() -> None:
    xy = _points(400)
    moved = xy + np.c_[12 * np.sin(xy[:, 1] / 80), 8 * np.cos(xy[:, 0] / 90)]
    error = np.hypot(*(MotionField(xy, moved).at(xy, leave_out=True).xy_b - moved).T)
    design = np.c_[xy, np.ones(len(xy))]
    flat = design @ np.linalg.lstsq(design, moved, rcond=None)[0]
    assert np.median(error) < 0.2 * np.median(np.hypot(*(flat - moved).T))


def test_the_field_is_the_same_for_any_split_of_the_queries() -> None:
    xy = _points()
    field = MotionField(xy, _affine(xy) + np.random.default_rng(0).normal(0, 1, xy.shape))
    both = field.at(xy)
    np.testing.assert_allclose(field.at(xy[:1]).xy_b, both.xy_b[:1])
    assert field.at(np.zeros((0, 2))).xy_b.shape == (0, 2)


def test_coincident_points_give_a_finite_field() -> None:
    same = np.full((8, 2), 50.0)
    sample = MotionField(same, same + 3.0).at(np.array([[50.0, 50], [60, 60]]))
    assert np.isfinite(sample.xy_b).all()
    np.testing.assert_allclose(sample.xy_b[0], 53.0, atol=1e-6)


def test_too_few_matches_raise_an_error() -> None:
    with pytest.raises(NotEnoughMatchesError, match=r"6 .*5"):
        MotionField(np.zeros((5, 2)), np.zeros((5, 2)))
