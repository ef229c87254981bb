"""Baselines for mosaics: consecutive SIFT chaining and OpenCV's Stitcher (SCANS).

Each method runs in a separate process, so that its peak memory can be measured.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import cv2
import numpy as np

from ml.evaluation.common.memory import peak_mib
from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.geometry import normalised
from ml.imaging.slides.slide import open_slide
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.types import ArrayF64, ImageU8

METHODS = ("tessera", "sift-chain", "opencv-scans")
STITCHER_FRAMES = 25
"""Largest number of frames of the Stitcher, which matches every pair."""

MIN_MATCHES = 12
"""Least number of matches and of inliers; fewer may agree by chance."""


@dataclass(frozen=True, slots=True)
class BaselineMosaic:
    """Mosaic of a sweep by one method.

    Attributes:
        placed: index -> (3, 3), frame px to px of its own mosaic.
        inputs: indices of its input frames (the Stitcher gets fewer).
        pixels: (H, W, 3) uint8, its mosaic, or None if it makes none.
        peak_mib: peak of its process, above the memory with the frames loaded.
        dropped: index -> reason code, of methods that give one.
        meshes: index -> displacement added to frame px before ``placed``, of methods with meshes.
    """

    placed: dict[int, ArrayF64]
    inputs: tuple[int, ...]
    pixels: ImageU8 | None
    wall_s: float
    cpu_s: float
    peak_mib: float
    loops: int = 0
    dropped: dict[int, str] | None = None
    model: str = ""
    meshes: dict[int, ArrayF64] = field(default_factory=dict)


class _Report(TypedDict):
    """Report of a method; see ``BaselineMosaic``."""

    placed: dict[int, ArrayF64]
    inputs: tuple[int, ...]
    pixels: ImageU8 | None
    loops: NotRequired[int]
    dropped: NotRequired[dict[int, str]]
    model: NotRequired[str]
    meshes: NotRequired[dict[int, ArrayF64]]


def attempt(method: str, sweep: SweepConfig, stills: Path | None = None) -> BaselineMosaic:
    """Run a method on a simulated sweep in a fresh process; see ``simulate_sweep``."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_attempt, (method, sweep, stills))


def _attempt(method: str, sweep: SweepConfig, stills: Path | None) -> BaselineMosaic:
    frames = simulate_sweep(sweep, stills).frames
    before, wall, cpu = peak_mib(), time.perf_counter(), time.process_time()
    outcome = _METHODS[method](frames)
    return BaselineMosaic(
        wall_s=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
        peak_mib=peak_mib() - before,
        **outcome,
    )


def sift_chain(frames: list[ImageU8]) -> dict[int, ArrayF64]:
    """Chain homographies of consecutive frames by SIFT, ratio test and RANSAC.

    The chain ends at the first pair that fails.
    """
    sift, matcher = cv2.SIFT.create(2000, contrastThreshold=0.01), cv2.BFMatcher(cv2.NORM_L2)
    placed: dict[int, ArrayF64] = {0: np.eye(3)}
    before: tuple[Any, Any] | None = None
    for index, frame in enumerate(frames):
        keypoints, rows = sift.detectAndCompute(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), None)
        if before is not None:
            matrix = _sift_step(matcher, (keypoints, rows), before)
            if matrix is None:
                break
            placed[index] = normalised(placed[index - 1] @ matrix)
        before = (keypoints, rows)
    return placed


def _sift_step(matcher: Any, later: tuple[Any, Any], earlier: tuple[Any, Any]) -> ArrayF64 | None:
    if later[1] is None or earlier[1] is None or min(len(later[1]), len(earlier[1])) < MIN_MATCHES:
        return None
    pairs = matcher.knnMatch(later[1], earlier[1], k=2)
    good = [p[0] for p in pairs if len(p) == 2 and p[0].distance < 0.8 * p[1].distance]
    if len(good) < MIN_MATCHES:
        return None
    a = np.array([later[0][m.queryIdx].pt for m in good])
    b = np.array([earlier[0][m.trainIdx].pt for m in good])
    matrix, inliers = cv2.findHomography(a, b, cv2.RANSAC, 3.0)
    if matrix is None or inliers.sum() < MIN_MATCHES:
        return None
    return np.asarray(matrix, np.float64)


def _run_tessera(frames: list[ImageU8]) -> _Report:
    with tempfile.TemporaryDirectory() as folder:
        result = build_mosaic(frames, Path(folder) / "mosaic", config=MosaicConfig())
        with open_slide(result.path) as slide:
            size = (slide.info.width_px, slide.info.height_px)
            pixels = slide.read_region((0, 0), size, size)
    return {
        "placed": {
            f.index: f.H_mosaic_from_frame
            for f in result.frames
            if f.H_mosaic_from_frame is not None and f.component == 0
        },
        "inputs": tuple(range(len(frames))),
        "pixels": pixels,
        "loops": result.quality.loops_closed if result.quality else 0,
        "dropped": {f.index: f.reason_code for f in result.frames if f.reason_code},
        "model": result.motion_model,
        "meshes": {f.index: f.mesh for f in result.frames if f.mesh is not None},
    }


def _run_sift(frames: list[ImageU8]) -> _Report:
    placed = sift_chain(frames)
    return {"placed": placed, "inputs": tuple(range(len(frames))), "pixels": None}


def _run_stitcher(frames: list[ImageU8]) -> _Report:
    """Run SCANS on evenly chosen frames; below 0.6 MP its cameras hold the affine maps."""
    step = max(1, -(-len(frames) // STITCHER_FRAMES))
    input_numbers = tuple(range(0, len(frames), step))
    stitcher = cv2.Stitcher.create(cv2.Stitcher_SCANS)
    images = [cv2.cvtColor(frames[i], cv2.COLOR_RGB2BGR) for i in input_numbers]
    try:
        status, mosaic = stitcher.stitch(images)
        used = [int(i) for i in stitcher.component()]
        cameras = stitcher.cameras()
    except cv2.error:
        status, mosaic, used, cameras = -1, None, [], []
    placed = {
        input_numbers[i]: np.asarray(camera.R, np.float64)
        for i, camera in zip(used, cameras, strict=False)
    }
    if status != cv2.Stitcher_OK or mosaic is None:
        return {"placed": {}, "inputs": input_numbers, "pixels": None}
    pixels = np.asarray(cv2.cvtColor(mosaic, cv2.COLOR_BGR2RGB), np.uint8)
    return {"placed": placed, "inputs": input_numbers, "pixels": pixels}


_METHODS: dict[str, Callable[[list[ImageU8]], _Report]] = {
    "tessera": _run_tessera,
    "sift-chain": _run_sift,
    "opencv-scans": _run_stitcher,
}
