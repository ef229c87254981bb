"""Novel views: hand-worked projection, planes against their homography, occlusion."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, ShapeError
from ml.training.vit.novel_view import (
    MotionConfig,
    back_project,
    move,
    project,
    random_camera,
    random_motion,
    synthesise_view,
    z_buffer,
)

CAMERA = np.array([[100, 0, 40.0], [0, 100, 30.0], [0, 0, 1]])
SHAPE = (60, 80)


def texture(shape=SHAPE, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2)


def plane(normal, distance):
    """Depth of the plane n . X = d over the pixels, n of unit length."""
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]]
    rays = np.stack([u, v, np.ones_like(u)], axis=2) @ np.linalg.inv(CAMERA).T
    return distance / (rays @ normal)


def motion(rotation=(0, 0, 0), translation=(0, 0, 0)):
    matrix = np.eye(4)
    matrix[:3, :3] = cv2.Rodrigues(np.array(rotation, np.float64))[0]
    matrix[:3, 3] = translation
    return matrix


def mapped(matrix):
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]]
    points = np.stack([u, v, np.ones_like(u)], axis=2) @ matrix.T
    return points[:, :, :2] / points[:, :, 2:]


def test_back_projection_equals_a_hand_worked_value():
    # equation 9: 2 * ((50 - 40) / 100, (10 - 30) / 100, 1)
    points = back_project(np.full(SHAPE, 2.0), CAMERA)
    assert np.allclose(points[10, 50], [0.2, -0.4, 2.0])
    assert np.allclose(points[30, 40], [0, 0, 2.0])


def test_projection_equals_a_hand_worked_value():
    # equation 10: a quarter turn about z takes (0.2, -0.4, 2) to (0.4, 0.2, 2), then + (0, 0, 2)
    moved = move(np.array([0.2, -0.4, 2.0]), motion((0, 0, np.pi / 2), (0, 0, 2)))
    assert np.allclose(moved, [0.4, 0.2, 4.0])
    # equations 11 and 12: (100 * 0.4 / 4 + 40, 100 * 0.2 / 4 + 30)
    xy, z = project(moved, CAMERA)
    assert np.allclose(xy, [50, 35]) and z == 4


def test_a_point_behind_the_camera_has_no_pixel():
    xy, z = project(np.array([[0, 0, -1.0], [0, 0, 1.0]]), CAMERA)
    assert np.isnan(xy[0]).all() and np.allclose(xy[1], [40, 30]) and z[0] == -1


def test_a_static_camera_gives_the_same_view():
    image = texture()
    view = synthesise_view(image, np.ones(SHAPE), camera=CAMERA, T_t_from_s=np.eye(4))
    assert np.array_equal(view.image, image)
    assert view.visible.all() and view.covered.all()


def test_scaling_depth_and_translation_equally_changes_nothing():
    depth = plane(np.array([0.3, 0, np.sqrt(1 - 0.09)]), 2.0)
    first, two = (
        synthesise_view(
            texture(),
            depth * scale,
            camera=CAMERA,
            T_t_from_s=motion((0.1, 0, 0.2), np.array((0.2, 0.1, -0.1)) * scale),
        )
        for scale in (1.0, 7.0)
    )
    assert np.allclose(first.xy_t, two.xy_t, atol=1e-3)


@pytest.mark.parametrize(
    ("rotation", "translation"),
    [((0, 0, 0.4), (0, 0, 0)), ((0.1, -0.15, 0.2), (0.1, -0.05, 0.2)), ((0, 0.2, 0), (0, 0, -0.3))],
)
def test_the_view_of_a_plane_is_its_homography(rotation, translation):
    normal = np.array([0.2, -0.1, 1])
    normal /= np.linalg.norm(normal)
    T = motion(rotation, translation)
    homography = CAMERA @ (T[:3, :3] + np.outer(T[:3, 3], normal) / 2.0) @ np.linalg.inv(CAMERA)
    image = texture()
    view = synthesise_view(image, plane(normal, 2.0), camera=CAMERA, T_t_from_s=T)
    assert np.allclose(view.xy_t, mapped(homography), atol=1e-3)
    back = mapped(np.linalg.inv(homography))
    inner = (back >= 1).all(axis=2) & (back <= (SHAPE[1] - 2, SHAPE[0] - 2)).all(axis=2)
    assert inner.sum() > 1500 and view.covered[inner].all()
    assert np.abs(view.xy_s - back)[inner].max() < 0.1
    truth = cv2.warpPerspective(image, homography, SHAPE[::-1])
    assert np.abs(truth.astype(int) - view.image)[inner].max() <= 6


def test_the_nearer_of_two_points_is_visible():
    xy = np.array([[2.0, 1.0], [2.0, 1.0], [np.nan, np.nan], [0.5, 0.0]])
    seen = z_buffer(xy, np.array([3.0, 2.0, 1.0, 5.0]), (2, 4))
    assert seen.tolist() == [[3, 3, -1, -1], [-1, -1, 1, -1]]


def test_the_buffer_agrees_with_a_loop_over_all_points():
    rng = np.random.default_rng(0)
    xy, z = rng.uniform(-2, 9, (60, 2)), rng.uniform(1, 2, 60)
    slow = np.full((7, 8), -1)
    for y in range(7):
        for x in range(8):
            near = [i for i in range(60) if np.abs(xy[i] - (x, y)).max() < 1]
            slow[y, x] = min(near, key=lambda i: z[i]) if near else -1
    assert np.array_equal(z_buffer(xy, z, (7, 8)), slow)


def test_a_near_plane_hides_a_plane_behind_it():
    # a strip at depth 1 before a wall at 2; the camera moves so that x falls by 10 px and 5 px
    depth = np.full(SHAPE, 2.0)
    depth[:, 40:50] = 1.0
    image = texture()
    view = synthesise_view(image, depth, camera=CAMERA, T_t_from_s=motion(translation=(-0.1, 0, 0)))
    assert np.allclose(view.xy_t[30, 45], [35, 30]) and np.allclose(view.xy_t[30, 20], [15, 30])
    # the strip covers columns 30 to 39 of the view, where the wall's columns 35 to 44 would be
    assert np.array_equal(view.image[:, 31:39], image[:, 41:49])
    assert not view.visible[:, 36:40].any()
    assert view.visible[:, 41:49].all() and view.visible[:, 6:34].all()
    # what the strip hid, wall columns 45 to 49, was never seen: the view is black there
    assert not view.covered[:, 41:44].any() and not view.image[:, 41:44].any()


def test_depth_that_is_not_positive_or_of_another_size_raises_an_error():
    with pytest.raises(ShapeError, match="finite, positive"):
        back_project(np.zeros(SHAPE), CAMERA)
    with pytest.raises(ShapeError, match="depth: expected"):
        synthesise_view(texture(), np.ones((9, 9)), camera=CAMERA, T_t_from_s=np.eye(4))


def test_a_random_motion_is_rigid_with_the_centre_near():
    rng, config = np.random.default_rng(0), MotionConfig()
    for _ in range(20):
        camera = random_camera(rng, 64, config)
        T = random_motion(rng, distance=3.0, field=2.0, config=config)
        assert np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3))
        assert np.isclose(np.linalg.det(T[:3, :3]), 1)
        xy, z = project(move(np.array([0, 0, 3.0]), T), camera)
        assert 3 * np.exp(-config.zoom) <= z <= 3 * np.exp(config.zoom)
        assert np.abs(xy - 31.5).max() < 64 * 0.5


def test_a_motion_of_zero_range_is_the_identity():
    still = MotionConfig(tilt_deg=0, roll_deg=0, shift=0, zoom=0)
    T = random_motion(np.random.default_rng(0), distance=1, field=1, config=still)
    assert np.allclose(T, np.eye(4))
    with pytest.raises(BadInputError, match="above 0"):
        random_motion(np.random.default_rng(0), distance=0, field=1, config=still)
