"""Polar patches: rings, rotation and the field of view."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.keypoints.descriptors import polar
from ml.keypoints.descriptors.polar import PolarGrid, normalise_patches, polar_patches, visible_area

GRID = PolarGrid(rings=8, angles=16, radius_px=32.0, core_px=8.0)


def _texture(height: int = 200, width: int = 220, seed: int = 3) -> np.ndarray:
    noise = np.random.default_rng(seed).random((height, width)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 3)
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min())
    return (40 + 200 * smooth).astype(np.uint8)


def test_radii_equal_hand_worked_values() -> None:
    radii = PolarGrid(rings=2, angles=4, radius_px=24.0, core_px=8.0).radii_px()
    # r(u) = 8 (4^u - 1) at u = 1/4 and 3/4
    np.testing.assert_allclose(radii, [8 * (4**0.25 - 1), 8 * (4**0.75 - 1)], rtol=1e-6)


def test_rings_are_denser_at_the_centre() -> None:
    steps = np.diff(GRID.radii_px())
    assert (np.diff(steps) > 0).all()
    assert (np.diff(GRID.levels()) >= 0).all()


def test_a_rotation_of_the_image_is_a_shift_of_the_patch() -> None:
    image = _texture(201, 201)
    centre = np.array([[100.0, 100.0]], np.float32)
    upright = polar_patches(image, centre, grid=GRID)
    turned = polar_patches(np.ascontiguousarray(np.rot90(image, -1)), centre, grid=GRID)
    np.testing.assert_allclose(np.roll(upright, 4, axis=3), turned, atol=0.02)


def test_patches_are_invariant_to_gain_and_offset() -> None:
    image = _texture()
    xy = np.array([[100, 100], [60, 90]], np.float32)
    darker = (image * 0.5 + 20).astype(np.uint8)
    a, b = polar_patches(image, xy, grid=GRID), polar_patches(darker, xy, grid=GRID)
    assert np.abs(a - b).mean() < 0.06


def test_share_and_value_are_zero_outside_the_image() -> None:
    patch = polar_patches(_texture(), np.array([[0.0, 100.0]], np.float32), grid=GRID)[0]
    assert patch[1, -1, 0] == 1.0  # to the right: inside
    assert patch[1, -1, 8] == 0.0 and patch[0, -1, 8] == 0.0  # to the left: outside


def test_normalised_patches_have_mean_zero_inside_the_field_of_view() -> None:
    rng = np.random.default_rng(0)
    share = (rng.random((4, 8, 16)) < 0.7).astype(np.float32)
    raw = np.stack([rng.uniform(0, 255, (4, 8, 16)).astype(np.float32) * share, share], axis=1)
    done = normalise_patches(raw.copy())
    np.testing.assert_allclose(done[:, 0].sum(axis=(1, 2)), 0, atol=1e-2)
    spread = np.sqrt((done[:, 0] ** 2).sum(axis=(1, 2)) / share.sum(axis=(1, 2)))
    assert (spread > 0.95).all() and (spread < 1.0).all()


def test_the_dark_surround_is_outside_and_dark_tissue_inside() -> None:
    image = np.zeros((200, 200), np.uint8)
    cv2.circle(image, (100, 100), 90, 120, -1)
    cv2.circle(image, (100, 100), 20, 3, -1)
    field = visible_area(image)
    assert field[5, 5] == 0 and field[100, 100] == 1 and field[100, 40] == 1


def test_a_point_in_the_surround_uses_all_of_the_image() -> None:
    image = np.zeros((200, 200), np.uint8)
    image[:, 100:] = _texture(200, 100)
    patch = polar_patches(image, np.array([[80.0, 100.0]], np.float32), grid=GRID)[0]
    assert patch[1].min() == 1.0 and patch[0].std() > 0.5


def test_no_points_give_no_patches() -> None:
    assert polar_patches(_texture(), np.zeros((0, 2), np.float32), grid=GRID).shape == (0, 2, 8, 16)


def test_tiles_do_not_change_the_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    image = _texture(400, 500)
    xy = np.random.default_rng(1).uniform(0, 399, (60, 2)).astype(np.float32)
    expected = polar_patches(image, xy, grid=GRID)
    monkeypatch.setattr(polar, "TILE_PX", 128)
    np.testing.assert_allclose(polar_patches(image, xy, grid=GRID), expected, atol=1e-4)


def test_points_on_the_rim_use_the_field_and_burnt_in_text_all_of_the_image() -> None:
    grey = np.zeros((200, 400), np.uint8)
    grey[:, 200:] = np.random.default_rng(0).integers(60, 200, (200, 200))
    grid = PolarGrid(rings=8, angles=16, radius_px=24.0, core_px=8.0)
    on_the_rim, in_the_surround = np.array([[198, 100], [100, 100]], np.float32)
    share = polar_patches(grey, np.stack([on_the_rim, in_the_surround]), grid=grid)[:, 1]
    assert share[0].min() == 0 and 0.1 < share[0].mean() < 0.5
    assert share[1].min() == 1
