"""Sub-pixel alignment of small patches: inverse-compositional Lucas-Kanade, all points at once."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

DAMPING, RELATIVE_DAMPING = 1e-6, 1e-4
"""Added to the Hessian's diagonal, the second times its trace: flat patches and edges stay
invertible, and move little where they hold no information."""

CONVERGED_STEPS = 5
"""A point whose last step was shorter than so many times ``done_px`` has converged well enough."""

WINDOW_SHARE = 0.6
"""Sigma of the Gaussian weights over half the patch: 0.25 of the middle's weight at its edge."""

MIN_DETERMINANT = 1e-3
"""A local map that shrinks areas further has no inverse to sample by."""

NO_CONTRAST = 1e-3
"""Length of a patch at least, in grey levels, so that a flat one divides by no zero."""

_CHUNK = 2048
"""Points aligned at once: their patches and slopes of 17 x 17 samples are about 20 MB."""


@dataclass(frozen=True, slots=True)
class AlignConfig:
    """How patches are aligned.

    Attributes:
        half: patches have (2 half + 1) squared samples.
        step_px: between samples, pixels of b, fractions allowed.
        smooth_px: sigma of the Gaussian blur of both images before, against grain.
        iterations: steps of the alignment at most.
        max_step_px: a longer step is cut to this length.
        done_px: a point whose step is shorter is moved no further.
    """

    half: int = 8
    step_px: float = 1.0
    smooth_px: float = 1.0
    iterations: int = 10
    max_step_px: float = 1.5
    done_px: float = 0.02


@dataclass(frozen=True, slots=True)
class PatchAlignment:
    """Where the patches of N points fit.

    Attributes:
        xy_b: (N, 2) float64, the aligned positions in b.
        zncc: (N,) float64, weighted zero-mean normalised correlation there, -1..1.
        is_converged: (N,) bool.
        noise_px: (N,) float64, predicted standard error: large on edges and flat tissue.
    """

    xy_b: ArrayF64
    zncc: ArrayF64
    is_converged: ArrayBool
    noise_px: ArrayF64


def smoothed(grey: ImageU8, sigma_px: float) -> ArrayF32:
    """(H, W) float32, blurred."""
    plane = grey.astype(np.float32)
    return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma_px)) if sigma_px > 0 else plane


def align_patches(
    plane_a: ArrayF32,
    plane_b: ArrayF32,
    xy_a: ArrayF64,
    xy_b: ArrayF64,
    jacobian: ArrayF64,
    *,
    config: AlignConfig = AlignConfig(),
) -> PatchAlignment:
    """Move each xy_b so that the patch of b around it looks like the warped patch of a.

    The patch of a is sampled through the inverse of the local map, so that rotation, scale and
    shear do not count; both patches are brought to zero mean and unit length under a Gaussian
    window, so that brightness and contrast do not either.

    Args:
        plane_a, plane_b: (H, W) float32. xy_a, xy_b: (N, 2). jacobian: (N, 2, 2), d xy_b / d xy_a.
    Returns:
        PatchAlignment of N points; memory is bounded, whatever N.
    Source: Baker and Matthews 2004, section 3.2 (inverse compositional, translation).
    """
    parts = [
        _align(plane_a, plane_b, xy_a[s], xy_b[s], jacobian[s], config=config)
        for s in (slice(i, i + _CHUNK) for i in range(0, max(len(xy_a), 1), _CHUNK))
    ]
    return PatchAlignment(
        np.concatenate([p.xy_b for p in parts]),
        np.concatenate([p.zncc for p in parts]),
        np.concatenate([p.is_converged for p in parts]),
        np.concatenate([p.noise_px for p in parts]),
    )


def _align(
    plane_a: ArrayF32,
    plane_b: ArrayF32,
    xy_a: ArrayF64,
    xy_b: ArrayF64,
    jacobian: ArrayF64,
    *,
    config: AlignConfig,
) -> PatchAlignment:
    grid, window = _grid(config.half, config.step_px)
    template, slope = _template(plane_a, xy_a, jacobian, config, window)
    hessian = (slope @ slope.transpose(0, 2, 1)).astype(np.float64)
    trace = hessian[:, 0, 0] + hessian[:, 1, 1]
    hessian[:, [0, 1], [0, 1]] += (DAMPING + RELATIVE_DAMPING * trace)[:, None]
    inverse = np.linalg.inv(hessian)
    at = xy_b.astype(np.float64).copy()
    step_px = np.full(len(at), np.inf)
    zncc = np.full(len(at), -1.0)
    live = np.arange(len(at))
    for _ in range(config.iterations):
        patch = _normalised(_sample(plane_b, at[live], grid), window)
        zncc[live] = (patch * template[live]).sum(axis=1)
        error = slope[live] @ (patch - template[live])[:, :, None]
        step = (inverse[live] @ error)[:, :, 0]
        length = np.hypot(*step.T)
        step *= np.minimum(1.0, config.max_step_px / np.maximum(length, 1e-12))[:, None]
        at[live] -= step
        step_px[live] = length
        live = live[length >= config.done_px]
        if not len(live):
            break
    residual = np.sqrt(np.maximum(2.0 - 2.0 * zncc, 0.0) / window.size)
    noise_px = residual * np.sqrt(np.maximum(inverse[:, 0, 0] + inverse[:, 1, 1], 0.0))
    return PatchAlignment(at, zncc, step_px < CONVERGED_STEPS * config.done_px, noise_px)


def _grid(half: int, step_px: float) -> tuple[ArrayF32, ArrayF32]:
    """(P, 2) offsets of a patch's samples and the (P,) root of their Gaussian weights."""
    line = np.arange(-half, half + 1, dtype=np.float32)
    x, y = np.meshgrid(line, line)
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    weight = np.exp(-0.25 * (grid**2).sum(axis=1) / (WINDOW_SHARE * half) ** 2)
    return grid * np.float32(step_px), weight.astype(np.float32)


def _template(
    plane: ArrayF32, xy: ArrayF64, jacobian: ArrayF64, config: AlignConfig, window: ArrayF32
) -> tuple[ArrayF32, ArrayF32]:
    """(N, P) normalised patches of a in b's axes, and their (N, 2, P) slopes."""
    wide, _ = _grid(config.half + 1, config.step_px)
    offsets = wide @ np.linalg.inv(_safe(jacobian)).transpose(0, 2, 1).astype(np.float32)
    side = 2 * config.half + 3
    patch = _gather(plane, xy[:, None] + offsets).reshape(-1, side, side)
    dx = (patch[:, 1:-1, 2:] - patch[:, 1:-1, :-2]) / (2 * config.step_px)
    dy = (patch[:, 2:, 1:-1] - patch[:, :-2, 1:-1]) / (2 * config.step_px)
    inner = patch[:, 1:-1, 1:-1].reshape(len(xy), window.size)
    slope = np.stack([dx.reshape(inner.shape), dy.reshape(inner.shape)], axis=1)
    energy = window**2 / (window**2).sum()
    centred = (inner - (inner @ energy)[:, None]) * window
    length = np.maximum(np.linalg.norm(centred, axis=1), NO_CONTRAST)
    template = centred / length[:, None]
    slope = (slope - (slope @ energy)[:, :, None]) * window / length[:, None, None]
    # what changes the contrast only is not motion
    slope -= (slope @ template[:, :, None]) * template[:, None]
    return template, slope


def _safe(jacobian: ArrayF64) -> ArrayF64:
    """Local maps, with the identity in place of those without an inverse."""
    fair = np.abs(np.linalg.det(jacobian)) > MIN_DETERMINANT
    return np.where(fair[:, None, None], jacobian, np.eye(2))


def _normalised(patch: ArrayF32, window: ArrayF32) -> ArrayF32:
    energy = window**2 / (window**2).sum()
    centred = (patch - (patch @ energy)[:, None]) * window
    length = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), NO_CONTRAST)
    normal: ArrayF32 = centred / length
    return normal


def _sample(plane: ArrayF32, xy: ArrayF64, grid: ArrayF32) -> ArrayF32:
    return _gather(plane, xy[:, None].astype(np.float32) + grid)


def _gather(plane: ArrayF32, at: np.ndarray) -> ArrayF32:
    """(N, P) bilinear values at (N, P, 2) positions, the border repeated."""
    n, p = at.shape[:2]
    if not n:
        return np.zeros((0, p), np.float32)
    maps = np.ascontiguousarray(at, np.float32)
    values = cv2.remap(plane, maps, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)  # type: ignore[call-overload]
    return np.asarray(values, np.float32).reshape(n, p)
