"""Texture measures compared with slow versions, and on synthetic channels."""

from __future__ import annotations

import numpy as np

from ml.roi.measures.texture import (
    ENERGY_DIM,
    LBP_DIM,
    SPECTRUM_BANDS,
    SPECTRUM_DIM,
    _riu2_histogram,
    band_energies,
    lbp_histogram,
    radial_spectrum,
)


def slow_riu2(channel, radius):
    """Slow version, pixel by pixel."""
    d = max(1, round(0.7071 * radius))
    ring = [
        (radius, 0),
        (d, d),
        (0, radius),
        (-d, d),
        (-radius, 0),
        (-d, -d),
        (0, -radius),
        (d, -d),
    ]
    counts = np.zeros(10)
    for y in range(radius, channel.shape[0] - radius):
        for x in range(radius, channel.shape[1] - radius):
            bits = [channel[y + dy, x + dx] > channel[y, x] for dx, dy in ring]
            changes = sum(bits[i] != bits[i - 1] for i in range(8))
            counts[sum(bits) if changes <= 2 else 9] += 1
    return counts / counts.sum()


def test_binary_patterns_equal_the_slow_version():
    channel = np.random.default_rng(0).random((30, 40), dtype=np.float32)
    for radius in (1, 2):
        assert np.allclose(_riu2_histogram(channel, radius), slow_riu2(channel, radius))


def test_a_flat_channel_has_one_pattern_and_stays_finite():
    flat = np.full((224, 224), 0.3, np.float32)
    assert lbp_histogram(flat).shape == (LBP_DIM,)
    assert lbp_histogram(flat).tolist() == ([1.0] + [0.0] * 9) * 3
    assert band_energies(flat).shape == (ENERGY_DIM,) and np.isfinite(band_energies(flat)).all()
    assert np.isfinite(radial_spectrum(flat)).all()


def test_the_power_of_a_wave_is_in_the_ring_of_its_frequency():
    frequency = 0.1
    wave = np.sin(2 * np.pi * frequency * np.arange(224))[None, :].repeat(224, 0)
    edges = np.geomspace(1 / 128, 0.5, SPECTRUM_BANDS + 1)
    spectrum = radial_spectrum(wave.astype(np.float32))
    assert spectrum.shape == (SPECTRUM_DIM,)
    assert spectrum[:-1].argmax() == np.digitize(frequency, edges) - 1


def test_stripes_are_more_coherent_than_noise():
    stripes = np.sin(np.arange(224) / 2)[None, :].repeat(224, 0).astype(np.float32)
    noise = np.random.default_rng(0).normal(size=(224, 224)).astype(np.float32)
    assert band_energies(stripes)[5] > 0.9 > band_energies(noise)[5] + 0.2
