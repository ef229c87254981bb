"""Robust geometry: exact recovery among outliers, typed errors."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import NotEnoughMatchesError, ShapeError, UnknownNameError
from ml.geometry import transform_points
from ml.keypoints.verification.estimation import (
    estimate_fundamental,
    estimate_transform,
    symmetric_epipolar_px,
)

TRUTH = {
    "similarity": np.array([[0.98, -0.17, 12], [0.17, 0.98, -7], [0, 0, 1.0]]),
    "affine": np.array([[1.02, -0.1, 5], [0.16, 0.95, 9], [0, 0, 1.0]]),
    "homography": np.array([[1.02, -0.1, 5], [0.16, 0.95, 9], [2e-4, -1e-4, 1.0]]),
}


def _points(n: int = 120) -> np.ndarray:
    return np.random.default_rng(1).uniform(0, 400, (n, 2))


@pytest.mark.parametrize("method", ["magsac", "ransac"])
@pytest.mark.parametrize("model", list(TRUTH))
def test_the_motion_is_recovered_among_outliers(model: str, method: str) -> None:
    xy_a = _points()
    xy_b = transform_points(TRUTH[model], xy_a)
    xy_b[:40] += np.random.default_rng(2).uniform(20, 90, (40, 2))
    transform = estimate_transform(
        xy_a.astype("f4"), xy_b.astype("f4"), model=model, threshold_px=2.0, method=method
    )
    assert transform.inliers.tolist() == [False] * 40 + [True] * 80
    corners = np.array([[0, 0], [400, 0], [400, 400], [0, 400.0]])
    error = transform_points(transform.matrix, corners) - transform_points(TRUTH[model], corners)
    assert np.abs(error).max() < 0.05


def test_the_epipolar_distance_equals_a_hand_worked_value() -> None:
    # pure sideways motion: partners share their row; 3 px off it in both images
    fundamental = np.array([[0, 0, 0], [0, 0, -1], [0, 1, 0.0]])
    distance = symmetric_epipolar_px(fundamental, np.array([[5, 7.0]]), np.array([[90, 10.0]]))
    np.testing.assert_allclose(distance, [6.0])


def test_a_fundamental_matrix_explains_a_rigid_scene() -> None:
    rng = np.random.default_rng(4)
    scene = np.c_[rng.uniform(-1, 1, (90, 2)), rng.uniform(3, 6, 90)]
    moved = scene + np.array([0.4, 0.1, 0.2])
    xy_a = (500 * scene[:, :2] / scene[:, 2:] + 320).astype("f4")
    xy_b = (500 * moved[:, :2] / moved[:, 2:] + 320).astype("f4")
    xy_b[:20] += rng.uniform(30, 80, (20, 2)).astype("f4")
    fundamental = estimate_fundamental(xy_a, xy_b)
    assert fundamental.inliers[20:].sum() >= 65
    inner = symmetric_epipolar_px(fundamental.matrix, xy_a[20:], xy_b[20:])
    assert np.median(inner) < 0.2


@pytest.mark.parametrize(("model", "n"), [("similarity", 1), ("affine", 2), ("homography", 3)])
def test_too_few_matches_raise_an_error_with_the_required_number(model: str, n: int) -> None:
    with pytest.raises(NotEnoughMatchesError, match=f"needs at least {n + 1} matches, got {n}"):
        estimate_transform(_points(n).astype("f4"), _points(n).astype("f4"), model=model)


def test_coincident_points_raise_an_error() -> None:
    same = np.ones((20, 2), np.float32)
    with pytest.raises(NotEnoughMatchesError):
        estimate_transform(same, same)
    with pytest.raises(NotEnoughMatchesError):
        estimate_fundamental(same[:5], same[:5])


def test_invalid_input_raises_an_error() -> None:
    points = _points(10).astype("f4")
    with pytest.raises(UnknownNameError, match="'spline'"):
        estimate_transform(points, points, model="spline")
    with pytest.raises(UnknownNameError, match="robust method"):
        estimate_transform(points, points, method="lmeds")
    with pytest.raises(ShapeError, match="xy_b"):
        estimate_transform(points, points[:5])
    with pytest.raises(ShapeError, match="NaN"):
        estimate_transform(points * np.nan, points)
