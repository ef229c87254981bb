"""Texture of one channel: local binary patterns, band energies, the radial power spectrum.

All features are rotation-invariant (up to the pixel grid) and take a channel (S, S) float32. Sums
use float64: in float32 they would depend on the memory alignment of the patch.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.types import ArrayF32, ArrayI64

_SQRT_HALF = 0.7071  # side of a diagonal step of length one
_RIU2_BINS = 10  # Ojala 2002: 9 uniform patterns of 8 neighbours, and the rest
_EPSILON = 1e-4  # for the logarithm of a flat patch

LBP_SCALES = ((1, 0.6, 1), (2, 1.0, 1), (2, 1.0, 2))
"""(radius, blur, subsampling) of each scale of ``lbp_histogram``."""
ENERGY_SCALES = 5  # octaves from the pixel up
ENERGY_PER_SCALE = 6  # three of the band, three of the gradient
SPECTRUM_BANDS = 14  # from 1/128 to 1/2 cycles per pixel

LBP_DIM = _RIU2_BINS * len(LBP_SCALES)
ENERGY_DIM = ENERGY_SCALES * ENERGY_PER_SCALE
SPECTRUM_DIM = SPECTRUM_BANDS + 1


def lbp_histogram(channel: ArrayF32) -> ArrayF32:
    """Rotation-invariant uniform local binary patterns at three scales.

    Args:
        channel: (S, S) float32.
    Returns:
        (30,) float32: square roots of three histograms of ten bins, each summing to one.
    Source: Ojala, Pietikäinen and Mäenpää 2002 (riu2, P = 8); neighbours at whole pixels.
    """
    parts = []
    for radius, sigma, step in LBP_SCALES:
        smooth = cv2.GaussianBlur(channel, (0, 0), sigma * step)[::step, ::step]
        parts.append(_riu2_histogram(np.asarray(smooth, np.float32), radius))
    return np.sqrt(np.concatenate(parts))


def band_energies(channel: ArrayF32) -> ArrayF32:
    """Statistics of band-passed channels and of the gradients of smoothed channels.

    Args:
        channel: (S, S) float32.
    Returns:
        (30,) float32: at each of five octaves log deviation, skewness and log kurtosis of the band,
        log mean and log deviation of the gradient, coherence of its orientation.
    """
    out: list[float] = []
    current, previous = channel, channel
    for octave in range(ENERGY_SCALES):
        sigma = 1.0 if octave == 0 else 0.87
        smooth: ArrayF32 = np.asarray(cv2.GaussianBlur(current, (0, 0), sigma), np.float32)
        out += _band_statistics(previous - smooth)
        out += _gradient_statistics(smooth)
        if octave >= 1:
            half = cv2.resize(smooth, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
            smooth = np.asarray(half, np.float32)
        current = previous = smooth
    return np.array(out, np.float32)


def radial_spectrum(channel: ArrayF32) -> ArrayF32:
    """Shares of power in rings of spatial frequency, and the total power.

    Args:
        channel: (S, S) float32.
    Returns:
        (15,) float32: fourteen log shares, rings spaced geometrically, then log total power.
    """
    size = channel.shape[0]
    ring, window = _rings(size)
    centred = channel - np.float32(cv2.mean(channel)[0])
    power = cv2.dft(centred * window, flags=cv2.DFT_COMPLEX_OUTPUT)
    power = np.square(power[..., 0]) + np.square(power[..., 1])
    bands = np.bincount(ring, power.ravel(), SPECTRUM_BANDS + 1)[:SPECTRUM_BANDS]
    total = float(bands.sum()) / size**2
    shares = bands / (bands.sum() + 1e-9)
    return np.append(np.log(shares + 1e-5), np.log(total + 1e-5)).astype(np.float32)


def mean_and_deviation(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Mean and deviation of a channel, summed in float64; faster than NumPy."""
    mean, deviation = cv2.meanStdDev(values)
    return float(mean[0, 0]), float(deviation[0, 0])


def _riu2_histogram(channel: ArrayF32, radius: int) -> ArrayF32:
    height, width = channel.shape
    diagonal = max(1, round(_SQRT_HALF * radius))
    offsets = [(radius, 0), (diagonal, diagonal), (0, radius), (-diagonal, diagonal)]
    offsets += [(-dx, -dy) for dx, dy in offsets]
    centre = channel[radius : height - radius, radius : width - radius]
    code = np.zeros(centre.shape, np.uint8)
    for bit, (dx, dy) in enumerate(offsets):
        rows = slice(radius + dy, height - radius + dy)
        columns = slice(radius + dx, width - radius + dx)
        higher = np.asarray(cv2.compare(channel[rows, columns], centre, cv2.CMP_GT), np.uint8)
        code |= higher & np.uint8(1 << bit)
    counts = np.bincount(code.ravel(), minlength=256)
    histogram = np.bincount(_riu2_table(), counts, _RIU2_BINS)
    return np.asarray(histogram / code.size, dtype=np.float32)


@lru_cache(maxsize=1)
def _riu2_table() -> ArrayI64:
    """Bin (256,) of each pattern: the number of set bits if uniform, else nine."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    transitions = np.abs(bits - np.roll(bits, 1, axis=1)).sum(axis=1)
    return np.where(transitions <= 2, bits.sum(axis=1), _RIU2_BINS - 1).astype(np.int64)


def _band_statistics(band: ArrayF32) -> list[float]:
    deviation = mean_and_deviation(band)[1] + _EPSILON
    unit = band / np.float32(deviation)
    square = unit * unit
    skewness = min(max(cv2.mean(square * unit)[0], -5.0), 5.0)
    kurtosis = min(max(cv2.mean(square * square)[0], 1.0), 50.0)
    return [math.log(deviation), skewness, math.log(kurtosis)]


def _gradient_statistics(smooth: ArrayF32) -> list[float]:
    wide = smooth.astype(np.float64)
    gx = cv2.Sobel(wide, cv2.CV_64F, 1, 0, scale=0.125)
    gy = cv2.Sobel(wide, cv2.CV_64F, 0, 1, scale=0.125)
    magnitude = cv2.magnitude(gx, gy)
    xx, yy = gx * gx, gy * gy
    along, across, both = (cv2.blur(p, (5, 5)) for p in (xx - yy, 2 * gx * gy, xx + yy))
    oriented = cv2.sumElems(cv2.magnitude(along, across))[0]
    coherence = oriented / (cv2.sumElems(both)[0] + 1e-6)
    mean, deviation = mean_and_deviation(magnitude)
    return [math.log(mean + _EPSILON), math.log(deviation + _EPSILON), coherence]


@lru_cache(maxsize=4)
def _rings(size: int) -> tuple[ArrayI64, ArrayF32]:
    frequency = np.fft.fftfreq(size)
    radius = np.hypot(frequency[:, None], frequency[None, :])
    edges = np.geomspace(1 / 128, 0.5, SPECTRUM_BANDS + 1)
    ring = np.digitize(radius, edges) - 1
    ring[(ring < 0) | (ring >= SPECTRUM_BANDS)] = SPECTRUM_BANDS
    window = np.outer(np.hanning(size), np.hanning(size)).astype(np.float32)
    return ring.ravel(), window
