"""Synthetic views of stills."""

from __future__ import annotations

import dataclasses

import numpy as np

from ml.geometry import transform_points
from ml.training.tessera.views import (
    TesseraViewConfig,
    degraded,
    motion_kernel,
    random_homography,
    warped,
)

CONFIG = TesseraViewConfig()
STILL = dataclasses.replace(
    CONFIG, full_turn=0, small_turn_deg=0, zoom=1, stretch=1, perspective=0, shift=0
)


def test_zero_motion_gives_the_identity() -> None:
    rng = np.random.default_rng(0)
    homography = random_homography(rng, width=120, height=80, config=STILL)
    np.testing.assert_allclose(homography, np.eye(3), atol=1e-12)


def test_homographies_turn_zoom_and_tilt_about_the_centre() -> None:
    rng = np.random.default_rng(1)
    config = dataclasses.replace(CONFIG, shift=0)
    centre = np.array([[59.5, 39.5]])
    for _ in range(20):
        matrix = random_homography(rng, width=120, height=80, config=config)
        np.testing.assert_allclose(transform_points(matrix, centre), centre, atol=1e-9)
        area = np.linalg.det(matrix / matrix[2, 2])
        assert 0.2 < abs(area) < 5


def test_a_view_shows_the_still_at_the_mapped_position() -> None:
    still = np.zeros((80, 120), np.uint8)
    still[30:33, 50:53] = 255
    rng = np.random.default_rng(3)
    matrix = random_homography(rng, width=120, height=80, config=CONFIG)
    view = warped(still, matrix, rng, dataclasses.replace(CONFIG, black_border=1.0)).astype(float)
    row, column = np.mgrid[:80, :120]
    centre_xy = np.array([(view * column).sum(), (view * row).sum()]) / view.sum()
    np.testing.assert_allclose(
        centre_xy, transform_points(matrix, np.array([[51.0, 31.0]]))[0], atol=1
    )


def test_a_motion_kernel_is_a_line_that_sums_to_one() -> None:
    kernel = motion_kernel(9, 0.0)
    assert kernel.sum() == np.float32(1) or abs(kernel.sum() - 1) < 1e-6
    middle = kernel[len(kernel) // 2]
    assert middle.sum() > 0.99 and (middle > 0.05).sum() == 9


def test_degraded_views_are_valid_images_and_deterministic_for_a_seed() -> None:
    still = np.random.default_rng(0).integers(0, 255, (90, 110)).astype(np.uint8)
    for seed in range(12):
        a = degraded(still, np.random.default_rng(seed), CONFIG)
        assert a.shape == still.shape and a.dtype == np.uint8
        assert np.array_equal(a, degraded(still, np.random.default_rng(seed), CONFIG))
