"""Simulated sweeps of a scope over real stills, of two visits with exact outlines.

``sweep_scene`` compares frames with frames, ``kinds_scene`` stills, frames and mosaics. The second
visit has another rotation, distance, tilt and light, and slightly moved tissue.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.evaluation.retrieval.places.scenes import PlaceRegion, Scene, sees, square
from ml.geometry import transform_points
from ml.training.common.stills import CLEAR_WINDOW
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8


@dataclass(frozen=True, slots=True)
class VisitConfig:
    """Differences between a visit and the still."""

    zoom: tuple[float, float]  # pixels of the still per pixel of a frame
    turn: float  # radians to either side
    tilt: float  # deviation of the two perspective terms, per pixel
    bend_px: float  # deviation of the tissue's own smooth movement
    side_light: float  # largest relative change of brightness from the middle to the side
    cast: float  # deviation of each colour's strength
    blur_px: tuple[float, float]  # deviation of the Gaussian


FIRST = VisitConfig((0.85, 1.05), 0.25, 2e-4, 1.5, 0.08, 0.01, (0.3, 0.8))
AGAIN = VisitConfig((0.6, 1.45), 1.4, 6e-4, 4.0, 0.25, 0.05, (0.3, 1.4))
"""Settings of the first and of the second visit."""


@dataclass(frozen=True, slots=True)
class StillSweepConfig:
    """A sweep over one still."""

    size_px: int = 400  # side of a frame
    frames: int = 16  # of each of the two visits
    step: int = 2  # frames between those that are searched
    side_px: float = 110.0  # of a place, pixels of the still
    spacing_px: float = 90.0  # between the centres of places
    window: tuple[float, ...] = CLEAR_WINDOW  # of the stills
    near_gap: int = 3  # frames


def sweep_scene(still: ImageU8, name: str, config: StillSweepConfig, *, seed: int) -> Scene:
    """Scene of two visits over a still (H, W, 3) uint8 RGB, with the places seen at least twice."""
    frames, _, mask, regions = _simulate_visits(still, config, seed)
    return Scene(
        name=name,
        truth="sweep",
        frames=frames,
        mask=mask,
        regions=regions,
        visits=(0,) * config.frames + (1,) * config.frames,
        near_gap=config.near_gap,
        far_gap=2 * config.frames,
    )


def kinds_scene(still: ImageU8, name: str, config: StillSweepConfig, *, seed: int) -> Scene:
    """Scene of places in a still, in frames of the second visit, and in a mosaic of the first.

    Each kind is a visit, so that a region is searched among those of the other two kinds. The
    mosaic averages the frames of the first visit at their true poses.
    """
    frames, maps, mask, regions = _simulate_visits(still, config, seed)
    mosaic, is_seen = _mosaic(still.shape, frames[: config.frames], maps, mask)
    place_regions = [region for region in regions if region.frame >= config.frames]
    visits = [0] * len(frames)
    for region in {region.place: region for region in place_regions}.values():
        corners = transform_points(maps[region.frame], region.outline)
        origin = np.round(corners.mean(axis=0) - config.size_px / 2).astype(int)
        origin = np.clip(origin, 0, np.array(still.shape[1::-1]) - config.size_px)
        if not sees(corners, is_seen):
            continue
        crop = tuple(slice(start, start + config.size_px) for start in origin[::-1])
        for visit, picture in enumerate((still, mosaic), start=1):
            place_regions.append(PlaceRegion(len(frames), region.place, corners - origin))
            frames.append(np.ascontiguousarray(picture[crop]))
            visits.append(visit)
    gap = len(frames) + 1  # no frame is near another
    return Scene(name, "kinds", frames, mask, tuple(place_regions), tuple(visits), gap, gap)


def _simulate_visits(
    still: ImageU8, config: StillSweepConfig, seed: int
) -> tuple[list[ImageU8], list[ArrayF64], ArrayBool, tuple[PlaceRegion, ...]]:
    """Frames of both visits, their H_still_from_frame, the field of view, and the regions."""
    rng = np.random.default_rng(seed)
    side = config.size_px
    y, x = np.mgrid[:side, :side].astype(np.float32)
    radius = np.hypot(x - side / 2, y - side / 2) / (side / 2)
    mask = np.asarray(radius < 0.95, np.bool_)
    frames: list[ImageU8] = []
    maps: list[ArrayF64] = []
    for number in range(2 * config.frames):
        visit = FIRST if number < config.frames else AGAIN
        pose = _pose(number, still.shape, visit, config, rng)
        frames.append(_render_frame(still, pose, visit, radius, rng))
        maps.append(pose)
    return frames, maps, mask, _regions(still.shape, maps, mask, config, rng)


def _mosaic(
    shape: tuple[int, ...], frames: list[ImageU8], maps: list[ArrayF64], mask: ArrayBool
) -> tuple[ImageU8, ArrayBool]:
    """Mean of frames on the plane of the still (H, W, 3), and where any frame is (H, W)."""
    size = (shape[1], shape[0])
    total = np.zeros(shape, np.float32)
    weight = np.zeros(shape[:2], np.float32)
    for frame, pose in zip(frames, maps, strict=False):
        inside = cv2.warpPerspective(mask.astype(np.float32), pose, size)
        total += cv2.warpPerspective(frame.astype(np.float32), pose, size) * inside[..., None]
        weight += inside
    is_seen = weight > 0.5
    return (total / np.maximum(weight, 0.5)[..., None]).astype(np.uint8), is_seen


def _pose(
    number: int,
    shape: tuple[int, ...],
    visit: VisitConfig,
    config: StillSweepConfig,
    rng: np.random.Generator,
) -> ArrayF64:
    """(3, 3) float64 H_still_from_frame: along a wave through the window and back."""
    share = (number % config.frames) / (config.frames - 1)
    share = share if number < config.frames else 1 - share
    left, top, right, bottom = np.array(config.window) * np.tile([shape[1], shape[0]], 2)
    across = left + (right - left) * (0.3 + 0.4 * share)
    down = top + (bottom - top) * (0.5 + 0.18 * np.sin(2 * np.pi * share))
    at = np.array([across, down]) + rng.normal(0, 4, 2)
    zoom = rng.uniform(*visit.zoom)
    turn = visit.turn * rng.uniform(-1, 1)
    c, s = zoom * np.cos(turn), zoom * np.sin(turn)
    placed = np.array([[c, -s, at[0]], [s, c, at[1]], [0, 0, 1]])
    tilted = np.eye(3)
    tilted[2, :2] = rng.normal(0, visit.tilt, 2)
    half = config.size_px / 2
    return np.asarray(placed @ tilted @ np.array([[1, 0, -half], [0, 1, -half], [0, 0, 1.0]]))


def _render_frame(
    still: ImageU8,
    H_still_from_frame: ArrayF64,
    visit: VisitConfig,
    radius: ArrayF32,
    rng: np.random.Generator,
) -> ImageU8:
    side = radius.shape[0]
    y, x = np.mgrid[:side, :side].astype(np.float32)
    bend = rng.normal(0, 1, (5, 5, 2)).astype(np.float32)
    moved = visit.bend_px * cv2.resize(bend, (side, side), interpolation=cv2.INTER_CUBIC)
    points = np.stack([x + moved[..., 0], y + moved[..., 1]], axis=-1).reshape(-1, 2)
    where = transform_points(H_still_from_frame, points).reshape(side, side, 2)
    view = cv2.remap(still, where.astype(np.float32), None, cv2.INTER_LINEAR)  # type: ignore[call-overload]
    slope = rng.uniform(-visit.side_light, visit.side_light, 2)
    light = (1 - 0.5 * radius**2) * np.clip((0.97 - radius) * 60, 0, 1) * rng.uniform(0.65, 1.35)
    light = light * (1 + slope[0] * (2 * x / side - 1) + slope[1] * (2 * y / side - 1))
    colour = 1 + rng.normal(0, visit.cast, 3)
    lit = view * light[..., None] * colour
    for _ in range(int(rng.integers(2, 7))):
        lit = _with_glare(np.asarray(lit, np.float32), rng)
    blurred = cv2.GaussianBlur(lit, (0, 0), rng.uniform(*visit.blur_px))
    noisy = blurred + rng.normal(0, 2, blurred.shape)
    return np.clip(noisy * (radius < 0.97)[..., None], 0, 255).astype(np.uint8)


def _with_glare(picture: ArrayF32, rng: np.random.Generator) -> ArrayF32:
    """Add a highlight of the lamp."""
    side = picture.shape[0]
    y, x = np.mgrid[:side, :side].astype(np.float32)
    at, size = rng.uniform(0.2, 0.8, 2) * side, rng.uniform(2, 7)
    spot = np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * size**2))[..., None]
    return np.asarray(picture * (1 - spot) + 250 * spot, np.float32)


def _regions(
    shape: tuple[int, ...],
    maps: list[ArrayF64],
    mask: ArrayBool,
    config: StillSweepConfig,
    rng: np.random.Generator,
) -> tuple[PlaceRegion, ...]:
    """Outlines of a grid of squares in the frames that see all of them."""
    left, top, right, bottom = np.array(config.window) * np.tile([shape[1], shape[0]], 2)
    half = config.side_px / 2
    regions: list[PlaceRegion] = []
    place = 0
    for y in np.arange(top + half, bottom - half, config.spacing_px):
        for x in np.arange(left + half, right - half, config.spacing_px):
            # A random offset, so that no place starts where another ends.
            corners = square(np.array([x, y]) + rng.uniform(-15, 15, 2), config.side_px)
            views = []
            for frame in range(0, len(maps), config.step):
                outline = transform_points(np.linalg.inv(maps[frame]), corners)
                if sees(outline, mask):
                    views.append(PlaceRegion(frame, place, outline))
            if len(views) >= 2:
                regions += views
                place += 1
    return tuple(regions)
