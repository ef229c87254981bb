"""Direct alignment: exact shifts, invariance to light, unrelated views, information."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.geometry import transform_points
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic.direct.alignment import DirectAlignment, align_views
from ml.mosaic.direct.pyramid import direct_view
from ml.mosaic.registration.motion_model import MODELS, motion_generators, nearest_in_model

MASK = np.ones((240, 240), np.bool_)
POINTS = np.array([[40, 40], [200, 40], [200, 200], [40, 200.0]])


def _view(matrix: np.ndarray, *, seed: int = 0, gain: float = 1.0) -> np.ndarray:
    scene = cv2.cvtColor(packaged_image("retina.jpg"), cv2.COLOR_RGB2GRAY)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    seen = cv2.warpPerspective(scene, matrix, (240, 240), flags=flags).astype(np.float32)
    noise = np.random.default_rng(seed).normal(0, 1.5, seen.shape)
    return (seen * gain + noise).astype(np.float32)


def _pose(x: float, y: float, turn: float = 0.0, tilt: float = 0.0) -> np.ndarray:
    c, s = np.cos(turn), np.sin(turn)
    return np.array([[c, -s, 500 + x], [s, c, 640 + y], [tilt, 0, 1.0]])


def _align(a: np.ndarray, b: np.ndarray, model: str, gain: float = 1.0) -> DirectAlignment | None:
    return align_views(
        direct_view(_view(a, seed=1), MASK),
        direct_view(_view(b, seed=2, gain=gain), MASK),
        np.eye(3),
        generators=motion_generators(model),
        work_shape=(240, 240),
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("gain", [1.0, 0.6])
def test_a_shift_is_estimated_to_a_tenth_of_a_pixel(model: str, gain: float) -> None:
    alignment = _align(_pose(6.3, -4.6), _pose(0, 0), model, gain)
    assert alignment is not None
    assert alignment.ncc > 0.8
    shift = transform_points(alignment.matrix, POINTS) - POINTS
    np.testing.assert_allclose(shift, np.tile([6.3, -4.6], (4, 1)), atol=0.35)
    np.testing.assert_allclose(shift.mean(axis=0), [6.3, -4.6], atol=0.1)


def test_rotation_and_tilt_are_estimated() -> None:
    a, b = _pose(3, 2, 0.03, 2e-5), _pose(0, 0)
    alignment = _align(a, b, "homography")
    assert alignment is not None
    true = transform_points(np.linalg.solve(b, a), POINTS)
    assert np.hypot(*(transform_points(alignment.matrix, POINTS) - true).T).mean() < 0.3


@pytest.mark.parametrize("model", MODELS)
def test_swapping_the_views_gives_the_inverse_motion(model: str) -> None:
    a = direct_view(_view(_pose(6.3, -4.6, 0.01), seed=1), MASK)
    b = direct_view(_view(_pose(0, 0), seed=2), MASK)
    generators = motion_generators(model)
    there = align_views(a, b, np.eye(3), generators=generators, work_shape=(240, 240))
    back = align_views(b, a, np.eye(3), generators=generators, work_shape=(240, 240))
    assert there is not None and back is not None
    again = transform_points(back.matrix @ there.matrix, POINTS)
    np.testing.assert_allclose(again, POINTS, atol=0.02)
    assert there.ncc == pytest.approx(back.ncc, abs=1e-3)


def test_cells_are_at_observed_positions_under_too_simple_a_model() -> None:
    a, b = _pose(3, 2) @ np.diag([1.01, 1.01, 1.0]), _pose(0, 0)
    alignment = _align(a, b, "translation")
    assert alignment is not None
    true = transform_points(np.linalg.solve(b, a), alignment.xy_a)
    by_cell = np.median(np.hypot(*(alignment.xy_b - true).T))
    by_model = np.median(np.hypot(*(transform_points(alignment.matrix, alignment.xy_a) - true).T))
    assert by_model > 0.4
    assert by_cell < 0.4 * by_model


def test_unrelated_views_correlate_little() -> None:
    alignment = _align(_pose(0, 0), _pose(-300, -200), "affine")
    assert alignment is None or alignment.ncc < 0.36


def test_views_without_overlap_have_no_alignment() -> None:
    far = np.array([[1, 0, 400.0], [0, 1, 0], [0, 0, 1]])
    view = direct_view(_view(_pose(0, 0)), MASK)
    generators = motion_generators("affine")
    assert align_views(view, view, far, generators=generators, work_shape=(240, 240)) is None


def test_a_view_without_reliable_cells_has_no_alignment() -> None:
    view = direct_view(_view(_pose(0, 0)), MASK)
    hidden = direct_view(_view(_pose(0, 0)), np.zeros_like(MASK))
    generators = motion_generators("affine")
    for a, b in ((hidden, view), (view, hidden)):
        assert align_views(a, b, np.eye(3), generators=generators, work_shape=(240, 240)) is None


def test_an_edge_constrains_only_the_direction_across_it() -> None:
    image = np.zeros((240, 240), np.float32)
    image[:, 118:122] = 100
    view = direct_view(cv2.GaussianBlur(image, (0, 0), 2), MASK)
    alignment = align_views(
        view, view, np.eye(3), generators=motion_generators("translation"), work_shape=(240, 240)
    )
    assert alignment is not None
    for root in alignment.root_info:
        info = root @ root.T
        assert info[0, 0] > 100 * abs(info[1, 1])


def test_the_nearest_motion_of_a_model_equals_a_hand_worked_value() -> None:
    matrix = np.array([[1.1, 0.2, 5], [-0.2, 1.1, 7], [1e-4, 0, 1]])
    shape = (101, 101)
    similar = nearest_in_model(matrix, "similarity", shape)
    assert similar[2, 0] == pytest.approx(0)
    assert similar[0, 0] == pytest.approx(similar[1, 1])
    shift = nearest_in_model(matrix, "translation", shape)
    np.testing.assert_allclose(shift[:2, :2], np.eye(2), atol=1e-12)
    middle = np.array([[50.0, 50.0]])
    np.testing.assert_allclose(
        transform_points(shift, middle), transform_points(matrix, middle), atol=1e-9
    )
    assert np.allclose(nearest_in_model(matrix, "homography", shape), matrix)
