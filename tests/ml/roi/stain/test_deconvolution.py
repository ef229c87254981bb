"""Colour deconvolution of mixtures with known concentrations."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.roi.stain.deconvolution import (
    RUIFROK_HE,
    WHITE,
    deconvolve,
    estimate_stains,
    optical_density,
    published_stains,
)


def mixed(concentrations, matrix):
    """RGB of known concentrations (N, 2) under unit stain vectors (2, 3)."""
    od = concentrations @ (matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
    return np.clip((WHITE + 1) * 10.0**-od - 1 + 0.5, 0, 255).astype(np.uint8)


def random_concentrations(count=20000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, (count, 2)) * rng.choice([[1, 0.1], [0.1, 1], [1, 1]], count)


def test_white_has_no_density_and_a_tenth_of_the_light_has_one():
    image = np.array([[[245, 245, 245], [24, 24, 24]]], np.uint8)
    density = optical_density(image)
    assert np.allclose(density[0, 0], 0, atol=1e-6)
    assert np.allclose(density[0, 1], np.log10(246 / 25), atol=1e-6)


def test_deconvolution_recovers_known_concentrations():
    truth = random_concentrations()
    stains = published_stains(mixed(truth, RUIFROK_HE))
    densities = deconvolve(mixed(truth, RUIFROK_HE), stains) * stains.scale
    assert np.abs(densities - truth).mean() < 0.01


def test_macenko_recovers_a_matrix_other_than_the_published_one():
    other = RUIFROK_HE + np.array([[0.06, -0.05, 0.08], [0.05, 0.0, 0.08]])
    stains = estimate_stains(mixed(random_concentrations(), other))
    assert stains.method == "macenko" and stains.reason == ""
    unit = other / np.linalg.norm(other, axis=1, keepdims=True)
    angles = np.degrees(np.arccos((stains.matrix * unit).sum(axis=1)))
    assert angles.max() < 6


def test_an_almost_empty_image_falls_back_with_a_reason():
    stains = estimate_stains(np.full((100, 100, 3), 250, np.uint8))
    assert stains.method == "ruifrok" and "tissue pixels" in stains.reason


def test_a_single_stain_falls_back_with_a_reason():
    truth = random_concentrations() * [1, 0]
    stains = estimate_stains(mixed(truth, RUIFROK_HE))
    assert stains.method == "ruifrok" and "one stain" in stains.reason


def test_green_pixels_fall_back_because_they_are_not_h_and_e():
    green = np.array([[0.9, 0.1, 0.5], [0.2, 0.1, 0.95]])
    stains = estimate_stains(mixed(random_concentrations(), green))
    assert stains.method == "ruifrok" and "not H&E" in stains.reason


def test_a_stronger_stain_gives_the_same_relative_concentrations():
    truth = random_concentrations() * 0.6
    weak, strong = mixed(truth, RUIFROK_HE), mixed(truth * 1.5, RUIFROK_HE)
    difference = deconvolve(weak, published_stains(weak)) - deconvolve(
        strong, published_stains(strong)
    )
    assert np.abs(difference).mean() < 0.02


def test_float_images_raise_an_error():
    with pytest.raises(ShapeError, match=r"expected \(\.\.\., 3\) uint8, got .*float64"):
        optical_density(np.zeros((4, 4, 3)))
