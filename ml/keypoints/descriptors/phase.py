"""Sub-pixel shift between two small windows by phase correlation."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF32, ArrayF64

_SMALL = 1e-9
"""Frequencies weaker than this over the strongest hold rounding errors, no phase; and a parabola
bent less than this has no top."""


def phase_correlation(source: ArrayF64, target: ArrayF64) -> ArrayF64:
    """Correlation map of the phases of two stacks of windows.

    Args:
        source, target: (N, h, w) float.
    Returns:
        (N, h, w) float64: C, zero shift at [0, 0], negative shifts wrapped round. A window
        without any contrast gives a map of zeros.
    Raises:
        ShapeError: the two differ in shape, or are not (N, h, w).
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
    """The peak of each correlation map, to a fraction of a pixel.

    The fraction is where a parabola through the peak and its two neighbours along each axis has
    its top; the paper takes the whole pixel of eq. 8 and calls it sub-pixel.

    Args:
        correlation: (N, h, w), zero shift at [0, 0]. reach_px: largest whole shift looked at.
    Returns:
        shift: (N, 2) float32, (du, dv) in px. peak: (N,) float32, C at the whole-pixel peak.
    Raises:
        ShapeError: ``reach_px`` is not below half of the window.
    Source: dinov2-adaptation-endoscopic-matching, eq. 8.
    """
    count, height, width = correlation.shape
    if not 0 <= reach_px < min(height, width) // 2:
        raise ShapeError(
            "reach_px", expected=f"0 to {min(height, width) // 2 - 1}", actual=str(reach_px)
        )
    centred = np.roll(correlation, (reach_px + 1, reach_px + 1), axis=(1, 2))
    near = centred[:, : 2 * reach_px + 3, : 2 * reach_px + 3]  # one more, for the parabola
    side = 2 * reach_px + 1
    flat = near[:, 1:-1, 1:-1].reshape(count, side * side)
    best = flat.argmax(axis=1)
    row, column = best // side + 1, best % side + 1
    each = np.arange(count)
    du = column - 1 - reach_px + _vertex(near, each, row, column, along_x=True)
    dv = row - 1 - reach_px + _vertex(near, each, row, column, along_x=False)
    return np.stack([du, dv], axis=1).astype(np.float32), flat[each, best].astype(np.float32)


def _vertex(
    near: ArrayF64, each: np.ndarray, row: np.ndarray, column: np.ndarray, *, along_x: bool
) -> ArrayF64:
    """(N,) offset of the parabola's top from the peak, in [-0.5, 0.5]; 0 if it is flat."""
    dx, dy = (1, 0) if along_x else (0, 1)
    before, after = near[each, row - dy, column - dx], near[each, row + dy, column + dx]
    bend = before - 2 * near[each, row, column] + after
    top = np.where(bend < -_SMALL, 0.5 * (before - after) / np.minimum(bend, -_SMALL), 0)
    return np.clip(top, -0.5, 0.5)


def refine_shift(
    source: ArrayF64, target: ArrayF64, *, reach_px: int, min_peak: float = 0.0
) -> ArrayF32:
    """How far each point of the source must move to show what its target window shows.

    Both windows are freed of their mean and faded to their border (Hann), so that the border does
    not correlate with itself.

    Args:
        source, target: (N, h, w), centred on the points. reach_px: largest shift looked for.
        min_peak: windows that agree less than this keep a shift of zero.
    Returns:
        (N, 2) float32: add it to the source points.
    Source: dinov2-adaptation-endoscopic-matching, eq. 7-8; the fading and ``min_peak`` are ours.
    """
    height, width = source.shape[1:]
    fade = np.hanning(height + 2)[1:-1, None] * np.hanning(width + 2)[None, 1:-1]
    a, b = ((w - w.mean(axis=(1, 2), keepdims=True)) * fade for w in (source, target))
    shift, peak = peak_shift(phase_correlation(a, b), reach_px=reach_px)
    shift[peak < min_peak] = 0
    return shift
