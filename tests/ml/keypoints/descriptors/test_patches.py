from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints.descriptors.patches import cut_patches


@pytest.fixture
def grey() -> np.ndarray:
    noise = np.random.default_rng(0).integers(0, 256, (96, 128), dtype=np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.0)


def test_an_upright_patch_equals_the_window(grey):
    # Side 8 around (40.5, 30.5): pixel centres at 37..44 and 27..34.
    patch = cut_patches(grey, np.array([[40.5, 30.5]], np.float32), side_px=8, support_px=8.0)
    assert patch.shape == (1, 1, 8, 8)
    np.testing.assert_allclose(patch[0, 0].numpy() * 255, grey[27:35, 37:45], atol=1e-2)


def test_a_patch_rotated_with_its_image_is_unchanged(grey):
    turned = cv2.rotate(grey, cv2.ROTATE_90_CLOCKWISE)  # (x, y) -> (H - 1 - y, x)
    xy = np.array([[40.0, 30.0]], np.float32)
    moved = np.array([[95.0 - 30.0, 40.0]], np.float32)
    before = cut_patches(grey, xy, side_px=16, support_px=16.0)
    after = cut_patches(
        turned, moved, side_px=16, support_px=16.0, angle_deg=np.array([90.0], np.float32)
    )
    np.testing.assert_allclose(before.numpy(), after.numpy(), atol=1e-3)


def test_a_large_support_is_smoothed_before_it_is_sampled():
    stripes = np.tile(np.array([0, 255], np.uint8), (256, 128))
    patch = cut_patches(stripes, np.array([[128.0, 128.0]], np.float32), side_px=16, support_px=64)
    assert float(patch.std()) < 0.02


def test_many_patches_equal_single_ones(grey):
    rng = np.random.default_rng(1)
    xy = rng.uniform(0, 90, (20, 2)).astype(np.float32)
    support = rng.uniform(8, 80, 20).astype(np.float32)
    angle = rng.uniform(0, 360, 20).astype(np.float32)
    together = cut_patches(grey, xy, side_px=16, support_px=support, angle_deg=angle)
    for i in range(20):
        alone = cut_patches(
            grey,
            xy[i : i + 1],
            side_px=16,
            support_px=support[i : i + 1],
            angle_deg=angle[i : i + 1],
        )
        np.testing.assert_allclose(together[i].numpy(), alone[0].numpy(), atol=1e-5)
    assert cut_patches(grey, xy[:0], side_px=16, support_px=8.0).shape == (0, 1, 16, 16)


def test_another_number_of_angles_raises_an_error(grey):
    with pytest.raises(ShapeError, match="angle_deg"):
        cut_patches(
            grey,
            np.zeros((2, 2), np.float32),
            side_px=8,
            support_px=8.0,
            angle_deg=np.zeros(3, np.float32),
        )


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 1), (0,)])
def test_another_number_of_supports_raises_an_error(grey, shape):
    with pytest.raises(ShapeError, match="support_px"):
        cut_patches(
            grey, np.zeros((2, 2), np.float32), side_px=8, support_px=np.ones(shape, np.float32)
        )
