"""Homographies and convex outlines: by hand, against a slow way, and where they have no answer."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ml.geometry import (
    FrameMaps,
    box_corners,
    depth_of,
    homography_jacobian,
    inside_convex,
    inverse,
    mesh_shift,
    normalised,
    outline_bounds,
    project_points,
    similarity,
    transform_points,
    translation,
)

TILTED = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 1.0]])
"""Its horizon is x = 1."""


def _homographies(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.eye(3) + 0.01 * rng.normal(size=(count, 3, 3)) * np.array([[1], [1], [1e-3]])


def test_many_transforms_equal_single_transforms() -> None:
    H = _homographies(5)
    xy = np.random.default_rng(1).uniform(0, 100, (7, 2))
    projected, is_front = project_points(H, xy)
    assert projected.shape == (5, 7, 2) and is_front.all()
    np.testing.assert_array_equal(transform_points(H, xy), projected)
    for i in range(5):
        np.testing.assert_allclose(transform_points(H[i], xy), projected[i])
        for j in range(7):
            x, y, w = H[i] @ [*xy[j], 1]
            assert projected[i, j] == pytest.approx((x / w, y / w))
            assert depth_of(H[i], xy)[j] == pytest.approx(w)


def test_the_inverse_returns_the_points() -> None:
    H = _homographies(3)
    xy = box_corners(0, 0, 40, 30)
    there = transform_points(H[0], xy)
    np.testing.assert_allclose(transform_points(inverse(H)[0], there), xy, atol=1e-9)


def test_points_behind_the_plane_are_reported_and_divide_by_no_zero() -> None:
    with np.errstate(all="raise"):
        xy, is_front = project_points(TILTED, np.array([[0.5, 1], [1, 1], [2, 1]]))
    assert is_front.tolist() == [True, False, False]
    assert xy[0].tolist() == [1, 2] and np.isfinite(xy).all()
    assert depth_of(TILTED, np.array([[0.5, 1], [1, 1], [2, 1]])).tolist() == [0.5, 0, -1]


def test_the_jacobian_equals_finite_differences() -> None:
    H, step = _homographies(1)[0], 1e-5
    xy = np.random.default_rng(2).uniform(0, 100, (6, 2))
    slow = np.stack(
        [
            (transform_points(H, xy + step * axis) - transform_points(H, xy - step * axis))
            / (2 * step)
            for axis in np.eye(2)
        ],
        axis=2,
    )
    np.testing.assert_allclose(homography_jacobian(H, xy), slow, atol=1e-7)


def test_a_similarity_equals_a_hand_worked_matrix() -> None:
    points = transform_points(similarity(2.0, np.pi / 2, 10, 20), np.array([[1.0, 0], [0, 1]]))
    np.testing.assert_allclose(points, [[10, 22], [8, 20]], atol=1e-12)
    np.testing.assert_array_equal(similarity(1.0, 0.0, 3, 4), translation(3, 4))


def test_a_normalised_homography_is_the_same_map() -> None:
    H = _homographies(1)[0] * -3.0
    xy = box_corners(0, 0, 9, 9)
    assert normalised(H)[2, 2] == 1
    np.testing.assert_allclose(transform_points(normalised(H), xy), transform_points(H, xy))


def test_inside_does_not_depend_on_the_orientation_of_the_outline() -> None:
    square = box_corners(0, 0, 10, 10)
    points = np.array([[5.0, 5], [10.4, 5], [11, 5], [-0.6, 5]])
    assert inside_convex(square, points).tolist() == [True, True, False, False]
    assert inside_convex(square[::-1], points).tolist() == [True, True, False, False]
    twice = np.repeat(square, 2, axis=0)
    assert inside_convex(twice, points).tolist() == [True, True, False, False]


def test_bounds_of_a_frame_behind_the_plane_are_infinite() -> None:
    maps = FrameMaps(np.array([np.eye(3), TILTED]), None, (3, 3))
    bounds = outline_bounds(maps, box_corners(0, 0, 2, 2))
    assert bounds[0].tolist() == [0, 0, 2, 2]
    assert np.isinf(bounds[1]).all()


def test_geometry_does_not_import_torch() -> None:
    code = "import sys, ml.geometry, ml.files, ml.config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def _bent(count: int) -> FrameMaps:
    meshes = np.random.default_rng(3).normal(scale=1.5, size=(count, 9, 9, 2))
    return FrameMaps(_homographies(count), meshes, (120, 90))


def test_a_mesh_is_bilinear_between_its_nodes_and_constant_beyond_its_edge() -> None:
    mesh = np.zeros((1, 3, 3, 2))
    mesh[0, 1, 1] = (2, -4)
    xy = np.array([[[10, 10], [5, 10], [5, 5], [20, 20], [-3, 10], [10, 99.0]]])
    shift = mesh_shift(mesh, (21, 21), xy)[0]
    assert shift.tolist() == [[2, -4], [1, -2], [0.5, -1], [0, 0], [0, 0], [0, 0]]


def test_maps_without_meshes_are_the_homographies() -> None:
    xy = np.random.default_rng(2).uniform(0, 90, (7, 2))
    maps = FrameMaps(_homographies(4), None, (120, 90))
    assert maps.to_plane(xy)[0] == pytest.approx(project_points(maps.H_plane_from_frame, xy)[0])
    back = inverse(maps.H_plane_from_frame)
    assert maps.to_frame(xy)[0] == pytest.approx(project_points(back, xy)[0])


def test_maps_with_meshes_round_trip() -> None:
    maps, xy = _bent(5), np.random.default_rng(2).uniform(5, 85, (40, 2))
    there, is_front = maps.to_plane(xy)
    assert is_front.all()
    for number in range(5):
        single = maps.chosen([number])
        assert single.to_frame(there[number])[0][0] == pytest.approx(xy, abs=1e-4)
    assert np.abs(there - project_points(maps.H_plane_from_frame, xy)[0]).max() > 0.5
