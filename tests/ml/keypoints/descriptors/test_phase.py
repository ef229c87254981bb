"""Phase correlation: exact shifts, a slow transform, windows without contrast."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints.descriptors.phase import peak_shift, phase_correlation, refine_shift


def texture(side, seed=0):
    noise = np.random.default_rng(seed).normal(0, 1, (side, side)).astype(np.float32)
    return cv2.GaussianBlur(noise, (0, 0), 1.5).astype(np.float64)


def slow_correlation(source, target):
    """Equation 7 with the transform as a matrix."""
    n = len(source)
    wave = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    a, b = wave @ source @ wave.T, wave @ target @ wave.T
    cross = a * b.conj() / np.abs(a * b.conj())
    back = wave.conj() / n
    return (back @ cross @ back.T).real


def test_the_map_equals_a_slow_transform():
    source, target = texture(8, 1), texture(8, 2)
    correlation = phase_correlation(source[None], target[None])[0]
    assert np.allclose(correlation, slow_correlation(source, target), atol=1e-8)


@pytest.mark.parametrize("shift", [(0, 0), (3, -2), (-4, 1)])
def test_a_circular_shift_has_a_peak_of_one(shift):
    source = texture(16)
    # the target shows at (x, y) what the source has at (x + du, y + dv)
    target = np.roll(source, (-shift[1], -shift[0]), axis=(0, 1))
    shifts, peak = peak_shift(phase_correlation(source[None], target[None]), reach_px=5)
    assert np.allclose(shifts[0], shift, atol=1e-6)
    assert np.allclose(peak, 1)


@pytest.mark.parametrize("shift", [(1.5, 0.0), (-2.3, 1.7), (0.4, -0.6)])
def test_a_shift_is_estimated_within_a_third_of_a_pixel(shift):
    big = cv2.GaussianBlur(
        np.random.default_rng(3).normal(0, 1, (96, 96)).astype(np.float32), (0, 0), 1.2
    )

    def window(dx, dy):
        matrix = np.array([[1, 0, 32 + dx], [0, 1, 32 + dy]], np.float32)
        flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        return cv2.warpAffine(big, matrix, (32, 32), flags=flags).astype(np.float64)

    offsets = refine_shift(window(0, 0)[None], window(*shift)[None], reach_px=4)
    assert np.abs(offsets[0] - shift).max() < 0.34


def test_the_vertex_of_a_parabola_equals_a_hand_worked_value():
    # 0.6, 1.0, 0.8 at -1, 0, 1: top at 0.5 (0.6 - 0.8) / (0.6 - 2 + 0.8) = 1/6
    correlation = np.zeros((1, 8, 8))
    correlation[0, 0, [7, 0, 1]] = 0.6, 1.0, 0.8
    shifts, peak = peak_shift(correlation, reach_px=2)
    assert np.allclose(shifts, [[1 / 6, 0]], atol=1e-6) and peak[0] == 1


def test_windows_without_contrast_have_no_shift():
    flat = np.full((2, 16, 16), 7.0)
    assert np.array_equal(phase_correlation(flat - 7, flat - 7), np.zeros_like(flat))
    shift = refine_shift(flat, flat, reach_px=4, min_peak=0.1)
    assert np.array_equal(shift, np.zeros((2, 2)))


def test_windows_that_do_not_correlate_have_no_shift():
    a, b = texture(16, 1)[None], texture(16, 2)[None]
    assert np.array_equal(refine_shift(a, b, reach_px=4, min_peak=0.9), [[0, 0]])
    assert np.abs(refine_shift(a, b, reach_px=4)).max() > 0


def test_no_windows_give_no_shifts():
    assert refine_shift(np.zeros((0, 8, 8)), np.zeros((0, 8, 8)), reach_px=2).shape == (0, 2)


def test_different_sizes_and_a_large_reach_raise_an_error():
    with pytest.raises(ShapeError, match="source"):
        phase_correlation(np.zeros((1, 8, 8)), np.zeros((1, 8, 9)))
    with pytest.raises(ShapeError, match=r"reach_px: .*4"):
        peak_shift(np.zeros((1, 8, 8)), reach_px=4)
