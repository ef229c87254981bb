"""Sub-pixel alignment of patches."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from ml.geometry import homography_jacobian, transform_points
from ml.keypoints.verification.patch_alignment import AlignConfig, align_patches, smooth_plane


@pytest.fixture(scope="module")
def texture() -> np.ndarray:
    rng = np.random.default_rng(0)
    noise = cv2.GaussianBlur(rng.normal(0, 1, (240, 320)).astype("f4"), (0, 0), 3)
    return np.asarray(cv2.normalize(noise, None, 20, 220, cv2.NORM_MINMAX), np.float32)


def _grid() -> np.ndarray:
    x, y = np.meshgrid(np.arange(50.0, 280, 23), np.arange(50.0, 200, 23))
    return np.stack([x.ravel(), y.ravel()], axis=1)


@pytest.mark.parametrize("step_px", [1.0, 1.5])
def test_a_known_shift_is_found(texture: np.ndarray, step_px: float) -> None:
    shift = np.array([1.3, -0.8])
    matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]])
    moved = cv2.warpAffine(texture, matrix, (320, 240), flags=cv2.INTER_CUBIC)
    xy, same = _grid(), np.tile(np.eye(2), (len(_grid()), 1, 1))
    config = AlignConfig(step_px=step_px)
    alignment = align_patches(texture, moved, xy, xy, same, config=config)
    assert alignment.is_converged.all()
    assert np.abs(alignment.xy_b - xy - shift).max() < 0.1
    assert alignment.zncc.min() > 0.99


def test_alignment_is_invariant_to_brightness_and_contrast(texture: np.ndarray) -> None:
    xy, same = _grid(), np.tile(np.eye(2), (len(_grid()), 1, 1))
    start = xy + np.array([0.9, 0.7])
    alignment = align_patches(texture, 0.4 * texture + 60, xy, start, same)
    assert np.abs(alignment.xy_b - xy).max() < 0.05


def test_rotation_and_scale_are_taken_from_the_local_map(texture: np.ndarray) -> None:
    turn = np.vstack([cv2.getRotationMatrix2D((160, 120), 40, 1.2), [0, 0, 1]])
    moved = cv2.warpPerspective(texture, turn, (320, 240), flags=cv2.INTER_CUBIC)
    xy = np.random.default_rng(1).uniform((120, 80), (200, 160), (40, 2))
    truth = transform_points(turn, xy)
    start = truth + np.random.default_rng(2).uniform(-1.5, 1.5, xy.shape)
    alignment = align_patches(texture, moved, xy, start, homography_jacobian(turn, xy.astype("f4")))
    error = np.hypot(*(alignment.xy_b - truth).T)
    assert np.median(error) < 0.1
    wrong = align_patches(texture, moved, xy, start, np.tile(np.eye(2), (40, 1, 1)))
    assert np.median(wrong.zncc) < np.median(alignment.zncc) - 0.2


def test_flat_tissue_is_finite_with_a_large_error(texture: np.ndarray) -> None:
    flat = np.full_like(texture, 90)
    xy = _grid()[:5]
    alignment = align_patches(flat, texture, xy, xy, np.tile(np.eye(2), (5, 1, 1)))
    assert np.isfinite(alignment.xy_b).all()
    assert np.isfinite(alignment.noise_px).all()
    assert (alignment.zncc < 0.5).all()
    assert (alignment.noise_px > 0.3).all()


def test_no_points_give_no_points(texture: np.ndarray) -> None:
    nothing = np.zeros((0, 2))
    alignment = align_patches(texture, texture, nothing, nothing, np.zeros((0, 2, 2)))
    assert alignment.xy_b.shape == (0, 2)


def test_points_outside_the_image_stay_finite(texture: np.ndarray) -> None:
    xy = np.array([[-40.0, 3], [500, 500]])
    config = replace(AlignConfig(), iterations=3)
    alignment = align_patches(
        texture, texture, xy, xy, np.tile(np.eye(2), (2, 1, 1)), config=config
    )
    assert np.isfinite(alignment.xy_b).all()


def test_without_blur_the_plane_is_unchanged() -> None:
    grey = np.arange(400, dtype=np.uint8).reshape(20, 20)
    np.testing.assert_array_equal(smooth_plane(grey, 0.0), grey.astype(np.float32))
