"""Dominant gradient direction, for key points of unknown angle."""

from __future__ import annotations

import cv2
import numpy as np

from ml.types import ArrayF32, ImageU8

BINS = 36
"""Bins of the histogram of directions, as in the paper."""

SIGMA_SHARE, CUT_SIGMAS = 1.5, 3.0
"""Sigma of the window relative to the key point, as in the paper, and its cut-off in sigmas."""

OCTAVE_PX, BLUR_PX = 6.0, 0.8
"""Support at full resolution, and the blur for it, which doubles with the support."""

MAX_OCTAVE = 4
"""Largest octave of the blur; supports beyond 96 px are rare."""

_GRID = 19
"""Samples per side, in steps of a third of the sigma of the window."""

_CHUNK = 512
"""Points per chunk: about 6 MB of samples."""


def dominant_angle_deg(grey: ImageU8, xy: ArrayF32, size_px: ArrayF32) -> ArrayF32:
    """Peak of the smoothed histogram of gradient directions around each point.

    The window is a Gaussian with 1.5 times the sigma of the key point, which is half its size.

    Args:
        grey: (H, W) uint8.
        xy: (N, 2) float32 pixels.
        size_px: (N,) float32 support diameters.
    Returns:
        (N,) float32 degrees in [0, 360), from x right towards y down, as in OpenCV.
    Source: Lowe 2004, section 5; departs from it by a single orientation per point (the highest
        peak) and by a fixed grid of 19 x 19 samples over the window.
    """
    angle = np.zeros(len(xy), np.float32)
    if not len(xy):
        return angle
    octave = np.rint(np.log2(np.maximum(size_px, 1.0) / OCTAVE_PX))
    octave = np.clip(octave, 0, MAX_OCTAVE).astype(np.int64)
    for level in np.unique(octave):
        smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), BLUR_PX * 2.0 ** float(level))
        dx = np.asarray(cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=3), np.float32)
        dy = np.asarray(cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=3), np.float32)
        rows = np.flatnonzero(octave == level)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            angle[part] = _peaks(dx, dy, xy[part], size_px[part])
    return angle


def _peaks(dx: ArrayF32, dy: ArrayF32, xy: ArrayF32, size_px: ArrayF32) -> ArrayF32:
    """Histogram peaks (n,) in degrees, interpolated by a parabola."""
    step = np.linspace(-1.0, 1.0, _GRID, dtype=np.float32)
    grid_x, grid_y = (g.ravel() for g in np.meshgrid(step, step))
    radius = (CUT_SIGMAS * SIGMA_SHARE * size_px / 2.0)[:, None]
    map_x = np.ascontiguousarray(xy[:, :1] + grid_x * radius, np.float32)
    map_y = np.ascontiguousarray(xy[:, 1:] + grid_y * radius, np.float32)
    gx = cv2.remap(dx, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    gy = cv2.remap(dy, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    window = np.exp(-0.5 * CUT_SIGMAS**2 * (grid_x**2 + grid_y**2))
    weight = np.hypot(gx, gy) * window
    position = (np.degrees(np.arctan2(gy, gx)) % 360.0) * (BINS / 360.0)
    low = np.floor(position).astype(np.int64)
    share = position - low
    base = np.arange(len(xy))[:, None] * BINS
    histogram = np.bincount(
        (base + low % BINS).ravel(), (weight * (1 - share)).ravel(), len(xy) * BINS
    ) + np.bincount((base + (low + 1) % BINS).ravel(), (weight * share).ravel(), len(xy) * BINS)
    return _interpolate(_smooth(histogram.reshape(len(xy), BINS)))


def _smooth(histogram: np.ndarray) -> np.ndarray:
    """Apply the circular kernel (1, 4, 6, 4, 1) / 16 twice."""
    for _ in range(2):
        adjacent = np.roll(histogram, 1, 1) + np.roll(histogram, -1, 1)
        second = np.roll(histogram, 2, 1) + np.roll(histogram, -2, 1)
        histogram = (6 * histogram + 4 * adjacent + second) / 16
    return histogram


def _interpolate(histogram: np.ndarray) -> ArrayF32:
    """Position (n,) of the highest bin in degrees, by a parabola through its neighbours."""
    rows = np.arange(len(histogram))
    peak = histogram.argmax(axis=1)
    left, mid = histogram[rows, (peak - 1) % BINS], histogram[rows, peak]
    right = histogram[rows, (peak + 1) % BINS]
    curve = left - 2 * mid + right
    offset = np.where(np.abs(curve) > 1e-12, 0.5 * (left - right) / np.where(curve, curve, 1), 0)
    return np.asarray(((peak + offset) * (360.0 / BINS)) % 360.0, np.float32)
