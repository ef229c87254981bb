"""Selection of the two-view model."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import NotEnoughMatchesError
from ml.geometry import transform_points
from ml.keypoints.verification.motion_field import MotionField
from ml.keypoints.verification.two_view_model import TwoViewModel, find_two_view_model, gric

PLANE = np.array([[1.02, -0.1, 5], [0.16, 0.95, 9], [2e-4, -1e-4, 1.0]])


def _points(n: int = 200) -> np.ndarray:
    return np.random.default_rng(1).uniform(0, 400, (n, 2))


def _relief(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    xy = rng.uniform(-0.5, 0.5, (n, 2))
    depth = 3 + np.sin(5 * xy[:, 0]) + 0.6 * np.cos(6 * xy[:, 1])
    scene = np.c_[xy * depth[:, None], depth]
    moved = scene + np.array([0.25, 0.05, 0.1])
    a, b = (500 * s[:, :2] / s[:, 2:] + 300 for s in (scene, moved))
    return a.astype("f4"), (b + rng.normal(0, 0.2, b.shape)).astype("f4")


def test_gric_equals_a_hand_worked_value() -> None:
    # misfit 0.25 + 4 (cut at 2 (4 - 2)), 2 n log 4, 8 log 4n, n = 2
    expected = 4.25 + 2 * 2 * np.log(4) + 8 * np.log(8)
    assert gric(np.array([0.5, 50.0]), structure=2, parameters=8) == pytest.approx(expected)


def test_a_plane_is_selected() -> None:
    xy_a = _points()
    xy_b = transform_points(PLANE, xy_a) + np.random.default_rng(2).normal(0, 0.3, xy_a.shape)
    xy_b[:6] += 8.0
    model = find_two_view_model(xy_a.astype("f4"), xy_b.astype("f4"))
    assert model.kind == "plane"
    agrees = model.agrees(xy_a.astype("f4"), xy_b.astype("f4"), leave_out=True)
    assert not agrees[:6].any()
    assert agrees[6:].mean() > 0.95


def test_noise_along_a_direction_is_a_plane() -> None:
    xy_a = _points(400)
    xy_b = transform_points(PLANE, xy_a)
    xy_b[:, 0] += np.random.default_rng(2).normal(0, 2.0, 400)
    assert find_two_view_model(xy_a.astype("f4"), xy_b.astype("f4")).kind == "plane"


def test_a_relief_is_a_rigid_scene() -> None:
    xy_a, xy_b = _relief()
    model = find_two_view_model(xy_a, xy_b)
    assert model.kind == "rigid"
    assert model.agrees(xy_a, xy_b, leave_out=True).mean() > 0.9
    back = model.inverse()
    assert back.agrees(xy_b, xy_a).mean() > 0.9


def test_soft_tissue_is_a_local_model() -> None:
    xy_a = _points(500)
    wave = 10 * np.c_[np.sin(xy_a[:, 1] / 40), np.cos(xy_a[:, 0] / 45)]
    xy_b = (xy_a + wave).astype("f4")
    model = find_two_view_model(xy_a.astype("f4"), xy_b)
    assert model.kind == "local"
    assert model.matrix is None
    assert model.agrees(xy_a.astype("f4"), xy_b, leave_out=True).mean() > 0.9


def test_no_points_are_accepted_and_five_raise_an_error() -> None:
    xy_a = _points().astype("f4")
    model = find_two_view_model(xy_a, xy_a)
    assert model.agrees(xy_a[:0], xy_a[:0]).shape == (0,)
    with pytest.raises(NotEnoughMatchesError):
        find_two_view_model(xy_a[:5], xy_a[:5])


def test_no_matches_of_a_mirror_image_agree() -> None:
    xy = np.random.default_rng(0).uniform(0, 400, (80, 2)).astype(np.float32)
    mirrored = np.stack([400 - xy[:, 0], xy[:, 1]], axis=1)
    model = find_two_view_model(xy, mirrored)
    assert not model.agrees(xy, mirrored, leave_out=True).any()
    assert find_two_view_model(xy, xy + 5).agrees(xy, xy + 5, leave_out=True).all()


def test_points_on_the_horizon_use_the_field() -> None:
    matrix = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1.0]])
    support = np.random.default_rng(0).uniform(0, 40, (30, 2))
    field = MotionField(support, transform_points(matrix, support))
    xy = np.array([[20, 20], [100, 5], [150, 5]], np.float32)  # before, on and behind it
    predicted = TwoViewModel("plane", matrix, field, 4.0).predict(xy)
    np.testing.assert_allclose(predicted.xy_b[0], [25, 25])
    assert np.isfinite(predicted.xy_b).all()
    assert np.isfinite(predicted.jacobian).all()
    assert predicted.spread_px[0] == 0 < predicted.spread_px[1]
