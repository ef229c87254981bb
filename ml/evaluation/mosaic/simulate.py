"""Simulated sweeps of a scope over a real picture, with the exact transform of every frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.evaluation.mosaic.ground import Ground, retina, tissue_of
from ml.imaging.samples.scope import Highlights, light_view, scope_light, scope_pose, scope_view
from ml.types import ArrayF32, ArrayF64, ImageU8

FAULTS: tuple[str, ...] = ("blurred", "dark", "bright", "smoke", "instrument", "unrelated")


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """A sweep over ``retina.jpg`` of scikit-image (1,411 px), or over a still.

    Attributes:
        still: name of an image in the folder of stills; empty for the retina.
        frames: number of frames.
        size_px: their side.
        path: "glide" crosses the picture once without coming back over itself; "loops" goes round
            three times on shifted rings; "loops-slow" is the same at the pace of 800 frames a
            sweep, cut off after ``frames``.
        fault_share: share of the frames made unusable, in runs of one to three, evenly over
            ``FAULTS``; the first three stay usable.
        exposure_drift: relative amplitude of slow changes of brightness.
        tilt: standard deviation of the two perspective terms, per px.
        break_at: share of the sweep after which the scope jumps elsewhere; 0 for never.
        relief: largest height of the hills, as a share of the scope's distance; for a still the
            typical deviation of its depth.
        seed: of all random draws.
    """

    frames: int = 100
    size_px: int = 470
    path: str = "glide"
    fault_share: float = 0.0
    exposure_drift: float = 0.12
    tilt: float = 1.2e-5
    break_at: float = 0.0
    relief: float = 0.0
    seed: int = 11
    still: str = ""


@dataclass(frozen=True, slots=True)
class SimulatedSweep:
    """(N, S, S, 3) uint8 frames; truth: index -> (3, 3) H_picture_from_frame; mask (S, S) uint8;
    faults: index -> which of ``FAULTS``."""

    frames: list[ImageU8]
    truth: dict[int, ArrayF64]
    mask: ImageU8
    faults: dict[int, str]
    ground: Ground


def simulate_sweep(config: SweepConfig, stills: Path | None = None) -> SimulatedSweep:
    """Simulate frames with tremor, vignetting, round view, highlights, exposure drift and faults.

    Args:
        stills: folder of ``config.still``.
    Raises:
        BadInputError: the still or its folder is missing.
    """
    ground = _ground(config, stills)
    rng = np.random.default_rng(config.seed)
    poses = _poses(rng, config, ground.picture.shape)
    faults = _faults(rng, config)
    light, mask = scope_light(config.size_px)
    highlights = _highlights(rng, config.size_px)
    drift = 1 + config.exposure_drift * np.sin(np.linspace(0, 5 * np.pi, config.frames) + 0.4)
    frames = []
    for n, pose in enumerate(poses):
        view = _view(ground, pose, config).astype(np.float32)
        view = np.asarray(_faulty(view, faults.get(n, ""), rng) * 1.15 * drift[n], np.float32)
        picture = light_view(view, light, highlights.glare(n, config.size_px))
        if faults.get(n) in ("dark", "bright"):
            picture = (
                picture * (0.06 if faults[n] == "dark" else 3.4) + (faults[n] == "bright") * 60
            )
        noisy = picture * (light[..., None] > 0) + rng.normal(0, 1.5, picture.shape)
        frames.append(np.clip(noisy, 0, 255).astype(np.uint8))
    return SimulatedSweep(frames, dict(enumerate(poses)), mask, faults, ground)


def _ground(config: SweepConfig, stills: Path | None) -> Ground:
    if not config.still:
        return retina(config.relief)
    if stills is None:
        raise BadInputError(f"{config.still}: expected the folder of the stills (--stills)")
    return tissue_of(stills / config.still, relief=config.relief, seed=config.seed)


def _view(ground: Ground, pose: ArrayF64, config: SweepConfig) -> ImageU8:
    """(S, S, 3) uint8 evenly lit ground."""
    side = config.size_px
    if not config.relief:
        return scope_view(ground.picture, pose, side)
    rows, columns = np.mgrid[:side, :side]
    xy = np.stack([columns.ravel(), rows.ravel()], axis=1).astype(np.float64)
    x, y = ground.picture_points(pose, xy, size_px=side).astype(np.float32).T.reshape(2, side, side)
    return np.asarray(cv2.remap(ground.picture, x, y, cv2.INTER_CUBIC), np.uint8)


def _poses(rng: np.random.Generator, config: SweepConfig, shape: tuple[int, ...]) -> list[ArrayF64]:
    """H_picture_from_frame of each frame; the middle stays inside the picture."""
    n = config.frames
    t = np.linspace(0, 1, n)
    height, width = shape[:2]
    reach = height * 0.5 - config.size_px * 0.56
    across = width * 0.5 - config.size_px * 0.56
    if config.path.startswith("loops"):
        # "loops-slow" has the pace of 800 frames a sweep.
        angle = 2 * np.pi * 3 * t * (n / 800 if config.path == "loops-slow" else 1)
        radius = reach * (0.72 + 0.16 * np.sin(2 * np.pi * t * 1.5))
        x, y = width / 2 + radius * np.cos(angle), height / 2 + radius * np.sin(angle)
    else:
        x = width / 2 + across * (1.5 * t - 0.75)
        y = height / 2 + reach * 0.45 * np.sin(2 * np.pi * t)
    if config.break_at:
        later = t > config.break_at
        x, y = np.where(later, width - x, x), np.where(later, y + 0.5 * reach, y)
    tremor = np.stack([_smooth(rng, n) for _ in range(6)])
    turn = 0.15 * np.sin(2 * np.pi * t + 0.7) + 0.01 * tremor[2]
    zoom = 0.93 + 0.06 * np.cos(2 * np.pi * t) + 0.004 * tremor[3]
    return [
        scope_pose(
            (x[i] + 1.5 * tremor[0, i], y[i] + 1.5 * tremor[1, i]),
            turn[i],
            zoom[i],
            tremor[4:, i] * config.tilt,
            size_px=config.size_px,
        )
        for i in range(n)
    ]


def _highlights(rng: np.random.Generator, size_px: int) -> Highlights:
    a, r, size, phase = rng.uniform(0, 1, (8, 4)).T
    angle, reach = 2 * np.pi * a, (0.05 + 0.3 * r) * size_px
    return Highlights(
        x=size_px / 2 + reach * np.cos(angle),
        y=size_px / 2 + reach * np.sin(angle),
        radius_px=(0.004 + 0.008 * size) * size_px,
        flicker=6.28 * phase,
        wander=6 * phase,
    )


def _smooth(rng: np.random.Generator, count: int) -> ArrayF64:
    taps = np.exp(-0.5 * (np.arange(-9, 10) / 3.0) ** 2)
    noise = np.convolve(rng.standard_normal(count + 18), taps, mode="valid")
    return np.asarray(noise / max(float(noise.std()), 1e-9), np.float64)


def _faults(rng: np.random.Generator, config: SweepConfig) -> dict[int, str]:
    fault_count = round(config.frames * config.fault_share)
    faults: dict[int, str] = {}
    kind = 0
    while len(faults) < fault_count:
        first, run = int(rng.integers(3, config.frames - 4)), int(rng.integers(1, 4))
        near = range(first - 2, first + run + 2)
        if any(i in faults for i in near):
            continue
        faults |= dict.fromkeys(range(first, first + run), FAULTS[kind % len(FAULTS)])
        kind += 1
    return faults


def _faulty(view: ArrayF32, fault: str, rng: np.random.Generator) -> ArrayF32:
    """Apply a fault of the scene; faults of the light are applied later."""
    side = view.shape[0]
    if fault == "blurred":
        length = max(9, side // 20)
        kernel = np.zeros((length, length), np.float32)
        turn = rng.uniform(0, np.pi)
        for at in np.linspace(-length / 2, length / 2, 4 * length):
            row = int(np.clip(length / 2 + at * np.sin(turn), 0, length - 1))
            column = int(np.clip(length / 2 + at * np.cos(turn), 0, length - 1))
            kernel[row, column] = 1
        return np.asarray(cv2.filter2D(view, -1, kernel / kernel.sum()), np.float32)
    if fault == "smoke":
        cloud = rng.uniform(0, 1, (5, 5)).astype(np.float32)
        thick = 0.62 + 0.3 * cv2.resize(cloud, (side, side), interpolation=cv2.INTER_CUBIC)
        thick = np.clip(thick, 0, 0.95)[..., None]
        return np.asarray(view * (1 - thick) + 165 * thick, np.float32)
    if fault == "instrument":
        return _instrument(view, rng)
    if fault == "unrelated":
        noise = rng.uniform(20, 200, (side // 12, side // 12, 3)).astype(np.float32)
        return np.asarray(cv2.resize(noise, (side, side), interpolation=cv2.INTER_CUBIC))
    return view


def _instrument(view: ArrayF32, rng: np.random.Generator) -> ArrayF32:
    """Draw a metal shaft with a highlight across a third of the view."""
    side = view.shape[0]
    turn = rng.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:side, :side].astype(np.float32) - side / 2
    along = x * np.cos(turn) + y * np.sin(turn)
    across = (-x * np.sin(turn) + y * np.cos(turn)) / (0.21 * side)
    inside = (np.abs(across) < 1) & (along > -0.3 * side)
    shine = 95 + 85 * np.clip(1 - across**2, 0, 1) + 40 * np.exp(-((across - 0.3) ** 2) / 0.01)
    metal = np.dstack([shine, shine * 1.01, shine * 1.03])
    return np.asarray(np.where(inside[..., None], metal, view), np.float32)
