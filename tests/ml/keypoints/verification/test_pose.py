"""Relative pose of a camera from matches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ml.errors import NotEnoughMatchesError, ShapeError, UnknownNameError
from ml.keypoints.verification.pose import estimate_pose

CAMERA = np.array([[500, 0, 320], [0, 500, 240], [0, 0, 1.0]])
OTHER = np.array([[800, 0, 300], [0, 780, 200], [0, 0, 1.0]])
TURN = Rotation.from_euler("y", 6, degrees=True).as_matrix()
SHIFT = np.array([0.6, 0.0, 0.8])


def _project(points: np.ndarray, camera: np.ndarray) -> np.ndarray:
    pixels = points @ camera.T
    return (pixels[:, :2] / pixels[:, 2:]).astype(np.float32)


def _views(*, depth: float = 1.0, camera_b: np.ndarray = CAMERA) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scene = np.c_[rng.uniform(-1, 1, (200, 2)), rng.uniform(3, 6, 200)]
    moved = scene @ TURN.T + SHIFT / depth
    return _project(scene, CAMERA), _project(moved, camera_b)


def _errors_deg(pose: object) -> tuple[float, float]:
    rotation_error = Rotation.from_matrix(TURN.T @ pose.rotation).magnitude()  # type: ignore[attr-defined]
    cosine = np.clip(SHIFT @ pose.direction, -1, 1)  # type: ignore[attr-defined]
    return float(np.degrees(rotation_error)), float(np.degrees(np.arccos(cosine)))


@pytest.mark.parametrize("method", ["magsac", "ransac"])
def test_the_motion_is_recovered_among_outliers(method: str) -> None:
    xy_a, xy_b = _views()
    xy_b[:60] += np.random.default_rng(1).uniform(20, 90, (60, 2)).astype(np.float32)
    pose = estimate_pose(xy_a, xy_b, CAMERA, method=method)
    assert max(_errors_deg(pose)) < 0.1
    assert pose.inliers[60:].all() and pose.inliers[:60].sum() <= 6
    assert np.linalg.norm(pose.direction) == pytest.approx(1)


def test_the_essential_matrix_equals_a_hand_worked_value() -> None:
    """E = [t]x R, whatever its scale and sign: y_b . (t x R y_a) = 0."""
    pose = estimate_pose(*_views(), CAMERA)
    x, y, z = SHIFT
    expected = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ TURN
    actual, expected = (m / np.linalg.norm(m) for m in (pose.essential, expected))
    sign = np.sign((actual * expected).sum())
    np.testing.assert_allclose(sign * actual, expected, atol=1e-4)


def test_two_different_cameras_are_supported() -> None:
    pose = estimate_pose(*_views(camera_b=OTHER), CAMERA, OTHER)
    assert max(_errors_deg(pose)) < 0.1


def test_the_direction_of_a_distant_scene_is_not_reversed() -> None:
    pose = estimate_pose(*_views(depth=100.0), CAMERA, threshold_px=0.2)
    assert _errors_deg(pose)[0] < 0.1
    assert _errors_deg(pose)[1] < 30  # and not 150 or more: the scene lies before the camera


def test_magsac_is_less_noisy_than_ransac() -> None:
    xy_a, xy_b = _views()
    errors: dict[str, list[float]] = {"magsac": [], "ransac": []}
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(0, 0.5, xy_b.shape).astype(np.float32)
        for method, result in errors.items():
            result.append(
                max(_errors_deg(estimate_pose(xy_a, xy_b + noise, CAMERA, method=method)))
            )
    assert np.median(errors["magsac"]) < 0.7 * np.median(errors["ransac"])


def test_invalid_input_raises_an_error() -> None:
    xy_a, xy_b = _views()
    with pytest.raises(NotEnoughMatchesError, match=r"5 .*4"):
        estimate_pose(xy_a[:4], xy_b[:4], CAMERA)
    with pytest.raises(UnknownNameError, match="'lucky'"):
        estimate_pose(xy_a, xy_b, CAMERA, method="lucky")
    with pytest.raises(ShapeError, match="camera_b"):
        estimate_pose(xy_a, xy_b, CAMERA, np.eye(4))
    with pytest.raises(ShapeError, match="finite"):
        estimate_pose(xy_a * np.float32("nan"), xy_b, CAMERA)


def test_coincident_points_raise_an_error() -> None:
    same = np.full((20, 2), 100, np.float32)
    with pytest.raises(NotEnoughMatchesError):
        estimate_pose(same, same, CAMERA)
