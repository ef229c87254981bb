"""Local normalisation of stains."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.roi.stain.deconvolution import RUIFROK_HE, WHITE
from ml.roi.stain.local import local_contrast


def painted(strength: float) -> np.ndarray:
    """(120, 120, 3) uint8: two stains in two patterns."""
    rng = np.random.default_rng(0)
    amount = np.stack([rng.uniform(0.1, 0.4, (120, 120)), rng.uniform(0.1, 0.3, (120, 120))], -1)
    unit = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
    light = (WHITE + 1) * 10.0 ** -(strength * amount @ unit) - 1
    return np.clip(light + 0.5, 0, 255).astype(np.uint8)


def test_each_channel_has_mean_0_and_deviation_1():
    contrast = local_contrast(painted(1.0), sigma_px=8.0, floor_od=1e-3)
    assert contrast.shape == (120, 120, 2) and contrast.dtype == np.float32
    assert contrast.mean(axis=(0, 1)) == pytest.approx([0, 0], abs=0.02)
    assert contrast.std(axis=(0, 1)) == pytest.approx([1, 1], abs=0.03)


def test_the_result_is_invariant_to_the_strength_of_the_stain():
    single, double = (local_contrast(painted(s), sigma_px=8.0, floor_od=1e-3) for s in (1.0, 2.0))
    for channel in (0, 1):
        assert np.corrcoef(single[..., channel].ravel(), double[..., channel].ravel())[0, 1] > 0.97
    assert np.abs(single - double).mean() < 0.15


def test_empty_glass_stays_nearly_zero():
    assert not local_contrast(np.full((64, 64, 3), 245, np.uint8)).any()


def test_noise_on_glass_is_not_amplified():
    noise = np.random.default_rng(0).integers(238, 246, (128, 128, 3)).astype(np.uint8)
    assert np.abs(local_contrast(noise)).mean() < 0.2


def test_an_image_smaller_than_the_window_is_accepted():
    assert np.isfinite(local_contrast(painted(1.0)[:3, :5])).all()


def test_estimated_vectors_reduce_the_influence_of_the_dye():
    published = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
    other = np.array([[0.75, 0.58, 0.32], [0.5, 0.75, 0.43]])
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    # mostly separate stains, as the vectors of mixtures cannot be estimated
    rng = np.random.default_rng(0)
    nuclear = cv2.GaussianBlur(rng.normal(size=(160, 160)), (0, 0), 2) > 0.1
    amount = rng.uniform(0.3, 0.8, (160, 160, 2)) * np.stack([nuclear, ~nuclear], -1)
    images = [
        np.clip((WHITE + 1) * 10.0 ** -(amount @ dye) - 0.5, 0, 255).astype(np.uint8)
        for dye in (published, other)
    ]
    change = {}
    for own_vectors in (True, False):
        first, second = (local_contrast(x, sigma_px=8.0, own_vectors=own_vectors) for x in images)
        change[own_vectors] = np.abs(first - second).mean()
    assert change[True] < 0.5 * change[False]
