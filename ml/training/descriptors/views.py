"""Endoscopic stills with their key points, and transformed views of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.geometry import normalised, translation
from ml.keypoints.detect import DetectorConfig, detect_keypoints, take
from ml.keypoints.masks import scope_mask
from ml.keypoints.pixels import MIN_SIDE_PX, equalise, to_grey
from ml.training.common.sources import images_in
from ml.training.common.stills import Area, areas_mask, read_still, resized
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, ImageU8, Keypoints, Progress

BURNT_IN: tuple[Area, ...] = ((0.0, 0.90, 0.24, 1.0), (0.84, 0.92, 1.0, 1.0))
"""Text and logo of the laparoscopy stills."""


@dataclass(frozen=True, slots=True)
class StillsConfig:
    """Stills and key points of a run."""

    folder: str = "endoscopy/laparoscopy-stills"  # relative to the data folder
    held_out: tuple[str, ...] = ("00004", "00011")  # operations kept for validation
    long_sides_px: tuple[int, ...] = (576, 720, 864)  # sizes that the stills take in turn
    keypoints: int = 400  # of an image, by SIFT
    apart_px: float = 5.0  # least distance of key points: near ones would be false negatives


@dataclass(frozen=True, slots=True)
class StillViewConfig:
    """Transforms of a view. Each view gets one of the paper's three kinds, or all and a tilt."""

    rotations_deg: tuple[float, ...] = (5.0, 10.0, 15.0)  # section 4.1; either sense
    shifts_px: tuple[float, ...] = (4.0, 6.0, 8.0, 10.0)  # section 4.1; each axis, either sense
    scales: tuple[float, ...] = (0.9, 0.95, 1.05, 1.1, 1.15)  # section 4.1
    combined: float = 0.3  # share of views with all three and a tilt at once; 0 in the paper
    tilt: float = 0.08  # of those: perspective, as a share of the image's side at its corners
    photometric: float = 0.6  # share of views with other light, blur and noise; 0 in the paper
    gain: tuple[float, float] = (0.7, 1.3)  # of those
    gamma: tuple[float, float] = (0.8, 1.25)  # of those
    blur_px: int = 15  # of half of those: longest motion blur
    noise_sd: float = 6.0  # of those: most noise, grey levels


@dataclass(frozen=True, slots=True)
class KeypointStill:
    """An image and its key points.

    Attributes:
        name: file name.
        grey: (H, W) uint8.
        equalised: the same after CLAHE.
        keypoints: of SIFT.
    """

    name: str
    grey: ImageU8
    equalised: ImageU8
    keypoints: Keypoints

    @property
    def xy(self) -> ArrayF32:
        """(N, 2) float32 px, of its key points."""
        return self.keypoints.xy


@dataclass(frozen=True, slots=True)
class StillView:
    """A transformed image after CLAHE, and the (3, 3) map of points from the still to it."""

    equalised: ImageU8
    H_view_from_still: ArrayF64


def read_stills(
    data: Path, config: StillsConfig, *, progress: Progress
) -> tuple[list[KeypointStill], list[KeypointStill]]:
    """Read the stills to train on and those held out.

    Raises:
        BadInputError: no image there, or no still left to train on.
    """
    paths = images_in(data / config.folder)
    if not paths:
        raise BadInputError(f"{config.folder}: expected a folder of images, found none")
    split: tuple[list[KeypointStill], list[KeypointStill]] = ([], [])
    for number, path in enumerate(paths, 1):
        long_side = config.long_sides_px[number % len(config.long_sides_px)]
        still = make_still(path.name, read_still(path), long_side_px=long_side, config=config)
        if still is not None:
            split[int(path.name.startswith(config.held_out))].append(still)
        progress(number, len(paths), "reading stills")
    if not split[0]:
        raise BadInputError(f"{config.folder}: no still with enough key points to train on")
    return split


def read_sequence(
    frames: Path, config: StillsConfig, *, max_count: int = 60
) -> list[KeypointStill]:
    """Read evenly spaced stills of a folder of frames or a video, at the last size.

    Raises:
        BadInputError: nothing to read, or no frame with enough key points.
    """
    from ml.mosaic.frames.sources import open_source

    source = open_source(frames)
    chosen_indexes = set(
        np.linspace(0, max(source.count - 1, 0), max_count).round().astype(int).tolist()
    )
    stills = []
    for frame in source.frames():
        if frame.index in chosen_indexes and frame.rgb is not None:
            name = f"{frame.index:06d}"
            side = config.long_sides_px[-1]
            still = make_still(name, frame.rgb, long_side_px=side, config=config, burnt_in=())
            stills += [] if still is None else [still]
    if not stills:
        raise BadInputError(f"{frames.name}: no frame with enough key points to learn from")
    return stills


def make_still(
    name: str,
    image: ImageU8,
    *,
    long_side_px: int,
    config: StillsConfig,
    burnt_in: Sequence[Area] = BURNT_IN,
    min_count: int = 20,
) -> KeypointStill | None:
    """Crop an image to the field of view and detect key points; None with fewer than ``min_count``.

    Args:
        long_side_px: of the image before it is cropped.
        burnt_in: areas without key points.
    """
    small = resized(image, long_side_px=long_side_px)
    grey = to_grey(small)
    mask = scope_mask(grey, margin_px=8) & ~areas_mask(grey.shape, burnt_in)
    box = _bounding_box(mask)
    small, grey, mask = small[box], np.ascontiguousarray(grey[box]), mask[box]
    if min(grey.shape) < MIN_SIDE_PX:
        return None
    detected = detect_keypoints(
        small, config=DetectorConfig("sift", max_keypoints=2 * config.keypoints), mask=mask
    )
    rows = spaced(detected.xy, apart_px=config.apart_px)[: config.keypoints]
    if len(rows) < min_count:
        return None
    return KeypointStill(name, grey, equalise(grey), take(detected, rows))


def spaced(xy: ArrayF32, *, apart_px: float) -> ArrayI64:
    """Select rows in order, at least ``apart_px`` from every selected point."""
    rows: list[int] = []
    for i, point in enumerate(xy):
        if not rows or np.square(xy[rows] - point).sum(axis=1).min() >= apart_px**2:
            rows.append(i)
    return np.array(rows, np.int64)


def random_transform(
    rng: np.random.Generator, size_px: tuple[int, int], config: StillViewConfig
) -> ArrayF64:
    """Draw a (3, 3) map: rotation, translation or scaling, or all of them and a tilt.

    Rotation and scaling are about the image's centre.

    Args:
        size_px: (height, width).
    Source: graph-ssl-endoscopic-matching, section 4.1; ``combined`` is ours.
    """
    is_combined = rng.random() < config.combined
    kind = int(rng.integers(3))
    angle = rng.choice(config.rotations_deg) * rng.choice((-1.0, 1.0))
    shift = rng.choice(config.shifts_px, 2) * rng.choice((-1.0, 1.0), 2)
    scale = rng.choice(config.scales)
    if not is_combined:
        angle, scale = angle if kind == 0 else 0.0, scale if kind == 2 else 1.0
        shift = shift if kind == 1 else np.zeros(2)
    height, width = size_px
    centre = ((width - 1) / 2, (height - 1) / 2)
    matrix = np.vstack([cv2.getRotationMatrix2D(centre, float(angle), float(scale)), [0, 0, 1]])
    matrix[:2, 2] += shift
    if not is_combined:
        return matrix
    tilt = _tilt(rng, centre, config.tilt)
    return normalised(tilt @ matrix)


def make_view(rng: np.random.Generator, still: KeypointStill, config: StillViewConfig) -> StillView:
    """Draw a view of a still: transformed, in other light, and equalised."""
    height, width = still.grey.shape
    matrix = random_transform(rng, (height, width), config)
    grey = np.asarray(cv2.warpPerspective(still.grey, matrix, (width, height)), np.uint8)
    if rng.random() < config.photometric:
        grey = other_light(rng, grey, config)
    return StillView(equalise(grey), matrix)


def other_light(rng: np.random.Generator, grey: ImageU8, config: StillViewConfig) -> ImageU8:
    """Change gain and gamma, add motion blur in half of the cases, and noise; (H, W) uint8."""
    light = 255.0 * (grey / 255.0) ** rng.uniform(*config.gamma) * rng.uniform(*config.gain)
    light = light.astype(np.float32)
    if rng.random() < 0.5 and config.blur_px >= 2:
        light = cv2.filter2D(light, -1, random_motion_kernel(rng, config.blur_px))  # type: ignore[assignment]
    noise = rng.standard_normal(grey.shape, np.float32) * rng.uniform(0, config.noise_sd)
    return np.clip(light + noise + 0.5, 0, 255).astype(np.uint8)


def random_motion_kernel(rng: np.random.Generator, longest_px: int) -> ArrayF32:
    """Random (k, k) float32 kernel of a line of at most ``longest_px``; its sum is 1."""
    length = float(rng.uniform(2, longest_px))
    angle = float(rng.uniform(0, np.pi))
    side = 2 * (int(np.ceil(length)) // 2) + 1
    kernel = np.zeros((side, side), np.float32)
    for t in np.linspace(-0.5, 0.5, 4 * side) * (length - 1):
        column = round(side // 2 + t * np.cos(angle))
        kernel[round(side // 2 + t * np.sin(angle)), column] += 1
    result: ArrayF32 = kernel / kernel.sum()
    return result


def _tilt(rng: np.random.Generator, centre: tuple[float, float], max_tilt: float) -> ArrayF64:
    """Random perspective about the centre, of at most ``max_tilt`` at the corners."""
    cx, cy = centre
    tilt = np.eye(3)
    tilt[2, :2] = rng.uniform(-max_tilt, max_tilt, 2) / np.maximum((cx, cy), 1.0)
    return translation(cx, cy) @ tilt @ translation(-cx, -cy)


def _bounding_box(mask: ArrayBool) -> tuple[slice, slice]:
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return slice(0, 0), slice(0, 0)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
