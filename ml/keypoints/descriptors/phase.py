"""Sub-pixel shift between two small windows by phase correlation."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF32, ArrayF64

_SMALL = 1e-9
"""Relative magnitude below which a frequency has no phase, and curvature below which a parabola has
no maximum."""


def phase_correlation(source: ArrayF64, target: ArrayF64) -> ArrayF64:
    """Correlation map of the phases of two stacks of windows.

    Args:
        source, target: (N, h, w) float.
    Returns:
        (N, h, w) float64, C with zero shift at [0, 0] and negative shifts wrapped around; zeros for
        a window without contrast.
    Raises:
        ShapeError: Different shapes, or not (N, h, w).
    Source: dinov2-adaptation-endoscopic-matching, eq. 7.
    """
    if source.ndim != 3 or source.shape != target.shape:
        raise ShapeError(
            "target", expected=f"(N, h, w) as the source's {source.shape}", actual=str(target.shape)
        )
    cross = np.fft.fft2(source) * np.conj(np.fft.fft2(target))
    size = np.abs(cross)
    floor = _SMALL * np.maximum(size.max(axis=(1, 2), keepdims=True), _SMALL)
    unit = np.where(size > floor, cross / np.maximum(size, floor), 0)
    return np.asarray(np.fft.ifft2(unit).real, np.float64)


def peak_shift(correlation: ArrayF64, *, reach_px: int) -> tuple[ArrayF32, ArrayF32]:
    """Sub-pixel position of the peak of each correlation map.

    Args:
        correlation: (N, h, w), zero shift at [0, 0].
        reach_px: Largest integer shift searched.
    Returns:
        shift: (N, 2) float32, (du, dv) in px.
        peak: (N,) float32, C at the integer peak.
    Raises:
        ShapeError: ``reach_px`` is not below half of the window.
    Source: dinov2-adaptation-endoscopic-matching, eq. 8; departs from it by a parabola through the
        peak and its neighbours along each axis.
    """
    count, height, width = correlation.shape
    if not 0 <= reach_px < min(height, width) // 2:
        raise ShapeError(
            "reach_px", expected=f"0 to {min(height, width) // 2 - 1}", actual=str(reach_px)
        )
    centred = np.roll(correlation, (reach_px + 1, reach_px + 1), axis=(1, 2))
    window = centred[:, : 2 * reach_px + 3, : 2 * reach_px + 3]  # one pixel more, for the parabola
    side = 2 * reach_px + 1
    flat = window[:, 1:-1, 1:-1].reshape(count, side * side)
    best = flat.argmax(axis=1)
    row, column = best // side + 1, best % side + 1
    index = np.arange(count)
    du = column - 1 - reach_px + _vertex(window, index, row, column, along_x=True)
    dv = row - 1 - reach_px + _vertex(window, index, row, column, along_x=False)
    return np.stack([du, dv], axis=1).astype(np.float32), flat[index, best].astype(np.float32)


def _vertex(
    window: ArrayF64, index: np.ndarray, row: np.ndarray, column: np.ndarray, *, along_x: bool
) -> ArrayF64:
    """Offset (N,) of the vertex of the parabola from the peak, in [-0.5, 0.5]; 0 if flat."""
    dx, dy = (1, 0) if along_x else (0, 1)
    left, right = window[index, row - dy, column - dx], window[index, row + dy, column + dx]
    curvature = left - 2 * window[index, row, column] + right
    offset = np.where(curvature < -_SMALL, 0.5 * (left - right) / np.minimum(curvature, -_SMALL), 0)
    return np.clip(offset, -0.5, 0.5)


def refine_shift(
    source: ArrayF64, target: ArrayF64, *, reach_px: int, min_peak: float = 0.0
) -> ArrayF32:
    """Estimate the shift of each source point that aligns its window with the target.

    The mean of both windows is subtracted and a Hann window applied, so that borders do not
    correlate.

    Args:
        source, target: (N, h, w), centred on the points.
        reach_px: Largest shift searched.
        min_peak: Smallest correlation; below, the shift is zero.
    Returns:
        (N, 2) float32, shift to add to the source points.
    Source: dinov2-adaptation-endoscopic-matching, eq. 7-8; departs from it by the Hann window and
        ``min_peak``.
    """
    height, width = source.shape[1:]
    fade = np.hanning(height + 2)[1:-1, None] * np.hanning(width + 2)[None, 1:-1]
    a, b = ((w - w.mean(axis=(1, 2), keepdims=True)) * fade for w in (source, target))
    shift, peak = peak_shift(phase_correlation(a, b), reach_px=reach_px)
    shift[peak < min_peak] = 0
    return shift
