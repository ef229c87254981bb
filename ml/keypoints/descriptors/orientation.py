"""Dominant gradient direction at given points, for descriptors that are told no angle."""

from __future__ import annotations

import cv2
import numpy as np

from ml.types import ArrayF32, ImageU8

BINS = 36
_GRID = 19
_CHUNK = 512


def dominant_angle_deg(grey: ImageU8, xy: ArrayF32, size_px: ArrayF32) -> ArrayF32:
    """Peak of the smoothed gradient-direction histogram around each point.

    The window is Gaussian with 1.5 sigma, sigma = size / 2, cut at 3 sigma.

    Args:
        grey: (H, W) uint8. xy: (N, 2) float32 pixels. size_px: (N,) float32 support diameters.
    Returns:
        (N,) float32 degrees in [0, 360), x to the right towards y down (OpenCV's convention).
    Source: Lowe 2004, section 5; departs from it by one orientation a point (the highest peak)
        and by sampling a fixed 19 x 19 grid over the window whatever its size.
    """
    angle = np.zeros(len(xy), np.float32)
    if not len(xy):
        return angle
    octave = np.clip(np.rint(np.log2(np.maximum(size_px, 1.0) / 6.0)), 0, 4).astype(np.int64)
    for level in np.unique(octave):
        smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 0.8 * 2.0 ** float(level))
        dx = np.asarray(cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=3), np.float32)
        dy = np.asarray(cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=3), np.float32)
        rows = np.flatnonzero(octave == level)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            angle[part] = _peaks(dx, dy, xy[part], size_px[part])
    return angle


def _peaks(dx: ArrayF32, dy: ArrayF32, xy: ArrayF32, size_px: ArrayF32) -> ArrayF32:
    """(n,) degrees of the histogram peaks, interpolated by a parabola."""
    step = np.linspace(-1.0, 1.0, _GRID, dtype=np.float32)
    grid_x, grid_y = (g.ravel() for g in np.meshgrid(step, step))
    radius = (4.5 * size_px / 2.0)[:, None]
    map_x = np.ascontiguousarray(xy[:, :1] + grid_x * radius, np.float32)
    map_y = np.ascontiguousarray(xy[:, 1:] + grid_y * radius, np.float32)
    gx = cv2.remap(dx, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    gy = cv2.remap(dy, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    window = np.exp(-4.5 * (grid_x**2 + grid_y**2))
    weight = np.hypot(gx, gy) * window
    position = (np.degrees(np.arctan2(gy, gx)) % 360.0) * (BINS / 360.0)
    low = np.floor(position).astype(np.int64)
    share = position - low
    base = np.arange(len(xy))[:, None] * BINS
    histogram = np.bincount(
        (base + low % BINS).ravel(), (weight * (1 - share)).ravel(), len(xy) * BINS
    ) + np.bincount((base + (low + 1) % BINS).ravel(), (weight * share).ravel(), len(xy) * BINS)
    return _interpolate(_smoothed(histogram.reshape(len(xy), BINS)))


def _smoothed(histogram: np.ndarray) -> np.ndarray:
    """Twice the circular (1, 4, 6, 4, 1) / 16 kernel."""
    for _ in range(2):
        near = np.roll(histogram, 1, 1) + np.roll(histogram, -1, 1)
        far = np.roll(histogram, 2, 1) + np.roll(histogram, -2, 1)
        histogram = (6 * histogram + 4 * near + far) / 16
    return histogram


def _interpolate(histogram: np.ndarray) -> ArrayF32:
    rows = np.arange(len(histogram))
    peak = histogram.argmax(axis=1)
    left, mid = histogram[rows, (peak - 1) % BINS], histogram[rows, peak]
    right = histogram[rows, (peak + 1) % BINS]
    curve = left - 2 * mid + right
    offset = np.where(np.abs(curve) > 1e-12, 0.5 * (left - right) / np.where(curve, curve, 1), 0)
    return np.asarray(((peak + offset) * (360.0 / BINS)) % 360.0, np.float32)
