"""Sub-pixel alignment of patches by inverse-compositional Lucas-Kanade."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

DAMPING, RELATIVE_DAMPING = 1e-6, 1e-4
"""Damping of the Hessian, absolute and relative to its trace, for flat patches and edges."""

CONVERGED_STEPS = 5
"""Largest last step of a converged point, in units of ``done_px``."""

WINDOW_SHARE = 0.6
"""Sigma of the Gaussian weights relative to half the patch: 0.25 at the edge."""

MIN_DETERMINANT = 1e-3
"""Smallest determinant of an invertible local map."""

NO_CONTRAST = 1e-3
"""Lower bound of the norm of a patch in divisions, in grey levels."""

_CHUNK = 2048
"""Points per chunk: about 20 MB with 17 x 17 samples."""


@dataclass(frozen=True, slots=True)
class AlignConfig:
    """Configuration of patch alignment.

    Attributes:
        half: Patches have (2 half + 1) squared samples.
        step_px: Spacing of samples, in pixels of b.
        smooth_px: Sigma of the Gaussian blur of both images.
        iterations: Largest number of iterations.
        max_step_px: Largest step of an iteration.
        done_px: Step at which the iteration stops.
    """

    half: int = 8
    step_px: float = 1.0
    smooth_px: float = 1.0
    iterations: int = 10
    max_step_px: float = 1.5
    done_px: float = 0.02


@dataclass(frozen=True, slots=True)
class PatchAlignment:
    """Aligned positions of N patches.

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


def smooth_plane(grey: ImageU8, sigma_px: float) -> ArrayF32:
    """Blur an image: (H, W) float32."""
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
    """Align the patch of b at each point with the warped patch of a.

    The patch of a is sampled through the inverse of the local map. Both patches are normalised to
    zero mean and unit length under a Gaussian window, which removes brightness and contrast.

    Args:
        plane_a, plane_b: (H, W) float32.
        xy_a: (N, 2) positions in a.
        xy_b: (N, 2) initial positions in b.
        jacobian: (N, 2, 2), d xy_b / d xy_a.
    Returns:
        PatchAlignment of N points.
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
    position = xy_b.astype(np.float64).copy()
    step_px = np.full(len(position), np.inf)
    zncc = np.full(len(position), -1.0)
    active = np.arange(len(position))
    for _ in range(config.iterations):
        patch = _normalise(_sample(plane_b, position[active], grid), window)
        zncc[active] = (patch * template[active]).sum(axis=1)
        error = slope[active] @ (patch - template[active])[:, :, None]
        step = (inverse[active] @ error)[:, :, 0]
        length = np.hypot(*step.T)
        step *= np.minimum(1.0, config.max_step_px / np.maximum(length, 1e-12))[:, None]
        position[active] -= step
        step_px[active] = length
        active = active[length >= config.done_px]
        if not len(active):
            break
    residual = np.sqrt(np.maximum(2.0 - 2.0 * zncc, 0.0) / window.size)
    noise_px = residual * np.sqrt(np.maximum(inverse[:, 0, 0] + inverse[:, 1, 1], 0.0))
    return PatchAlignment(position, zncc, step_px < CONVERGED_STEPS * config.done_px, noise_px)


def _grid(half: int, step_px: float) -> tuple[ArrayF32, ArrayF32]:
    """Offsets (P, 2) of the samples of a patch, and square roots (P,) of Gaussian weights."""
    line = np.arange(-half, half + 1, dtype=np.float32)
    x, y = np.meshgrid(line, line)
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    weight = np.exp(-0.25 * (grid**2).sum(axis=1) / (WINDOW_SHARE * half) ** 2)
    return grid * np.float32(step_px), weight.astype(np.float32)


def _template(
    plane: ArrayF32, xy: ArrayF64, jacobian: ArrayF64, config: AlignConfig, window: ArrayF32
) -> tuple[ArrayF32, ArrayF32]:
    """Normalised patches (N, P) of a in the axes of b, and their gradients (N, 2, P)."""
    wide, _ = _grid(config.half + 1, config.step_px)
    offsets = wide @ np.linalg.inv(_invertible(jacobian)).transpose(0, 2, 1).astype(np.float32)
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
    # remove changes of contrast
    slope -= (slope @ template[:, :, None]) * template[:, None]
    return template, slope


def _invertible(jacobian: ArrayF64) -> ArrayF64:
    """Replace singular local maps by the identity."""
    is_invertible = np.abs(np.linalg.det(jacobian)) > MIN_DETERMINANT
    return np.where(is_invertible[:, None, None], jacobian, np.eye(2))


def _normalise(patch: ArrayF32, window: ArrayF32) -> ArrayF32:
    energy = window**2 / (window**2).sum()
    centred = (patch - (patch @ energy)[:, None]) * window
    length = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), NO_CONTRAST)
    unit: ArrayF32 = centred / length
    return unit


def _sample(plane: ArrayF32, xy: ArrayF64, grid: ArrayF32) -> ArrayF32:
    return _gather(plane, xy[:, None].astype(np.float32) + grid)


def _gather(plane: ArrayF32, position: np.ndarray) -> ArrayF32:
    """Bilinear values (N, P) at positions (N, P, 2), with replicated border."""
    n, p = position.shape[:2]
    if not n:
        return np.zeros((0, p), np.float32)
    maps = np.ascontiguousarray(position, np.float32)
    values = cv2.remap(plane, maps, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)  # type: ignore[call-overload]
    return np.asarray(values, np.float32).reshape(n, p)
