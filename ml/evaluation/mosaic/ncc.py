"""Agreement of overlapping frames: NCC, without static patterns of the lens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.evaluation.mosaic.baselines import sift_chain
from ml.evaluation.mosaic.targets import MOSAIC, PAIRS
from ml.keypoints.masks import checked_mask
from ml.mosaic.frames.sources import open_source
from ml.mosaic.local_mesh.views import mesh_maps
from ml.mosaic.result import MosaicResult
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

DISTANCES = (1, 5, 20)
"""Distances in frames."""
NCC_SIGMA, SHADING_SIGMA = 1.0, 6.0
"""Sigmas of the compared band, px: above the sensor's noise, below the shading."""
MIN_OVERLAP = 0.1
"""Least overlap of two compared frames, as a share of the view."""
MIN_PATTERN_FRAMES = 25
"""Least number of frames whose median shows no scene."""
RIM_PX = 10
"""Margin of the view, px, whose edge is static."""

Pairwise = Callable[[int, int], "npt.NDArray[Any] | None"]
"""(a, b) -> (3, 3) that maps frame b to frame a, or None if the method has none."""


def chained(placed: Mapping[int, npt.NDArray[Any]]) -> Pairwise:
    """Motion between any two frames placed in one plane."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        if a not in placed or b not in placed:
            return None
        return np.asarray(np.linalg.solve(placed[a], placed[b]))

    return between


def sift_pairs(frames: Mapping[int, ImageU8]) -> Pairwise:
    """Motion between two frames matched directly by SIFT."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        chain = sift_chain([frames[a], frames[b]])
        return chain.get(1)

    return between


def sweep_ncc(
    frames: Sequence[npt.NDArray[Any]],
    placed: Mapping[int, ArrayF64],
    meshes: Mapping[int, ArrayF64],
    *,
    mask: npt.NDArray[Any],
) -> dict[str, dict[str, float]]:
    """``ncc_table`` by the transforms of a mosaic, and by direct matching of each pair."""
    images, inside = clean_frames(frames), inner_view(mask, frames[0].shape)
    plain = {index: visible(image) for index, image in images.items()}
    return {
        MOSAIC: ncc_table(straightened_frames(images, meshes), chained(placed), inside),
        PAIRS: ncc_table(images, sift_pairs(plain), inside),
    }


def ncc_table(
    images: Mapping[int, ArrayF32],
    between: Pairwise,
    inside: ArrayBool,
    *,
    distances: Sequence[int] = DISTANCES,
) -> dict[str, float]:
    """Mean NCC by distance of overlapping frames, the later warped onto the earlier."""
    scores = {}
    for distance in distances:
        values = []
        for f in sorted(images):
            if f + distance not in images:
                continue
            matrix = between(f, f + distance)
            if matrix is not None:
                values.append(_ncc(images[f], images[f + distance], matrix, inside))
        known_values = [v for v in values if v is not None]
        scores[str(distance)] = (
            round(float(np.mean(known_values)), 4) if known_values else float("nan")
        )
    return scores


def clean_frames(frames: Path | Sequence[npt.NDArray[Any]]) -> dict[int, ArrayF32]:
    """Filter frames for comparison.

    The temporal median is subtracted, so that a static pattern of the lens does not favour "no
    motion". The band from 1 to 6 px remains, which has vessels and no shading.

    Returns:
        (H, W) float32 by index.
    """
    greys = {
        frame.index: cv2.cvtColor(frame.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
        for frame in open_source(frames).frames()
        if frame.rgb is not None
    }
    has_pattern = len(greys) >= MIN_PATTERN_FRAMES
    still = np.median(np.stack(list(greys.values())), axis=0) if has_pattern else np.float32(0)
    cleaned = {}
    for index, grey in greys.items():
        moving = np.asarray(grey - still, np.float32)
        band = cv2.GaussianBlur(moving, (0, 0), NCC_SIGMA)
        cleaned[index] = np.asarray(band - cv2.GaussianBlur(moving, (0, 0), SHADING_SIGMA))
    return cleaned


def meshes_of(result: MosaicResult) -> dict[int, ArrayF64]:
    """Meshes by frame index, of frames that have one."""
    return {frame.index: frame.mesh for frame in result.frames if frame.mesh is not None}


def straightened_frames(
    images: Mapping[int, ArrayF32], meshes: Mapping[int, ArrayF64]
) -> dict[int, ArrayF32]:
    """Warp filtered frames by their meshes, where they have one."""
    straight = dict(images)
    for index in meshes.keys() & images.keys():
        height, width = images[index].shape
        maps = mesh_maps(meshes[index], (width, height))
        straight[index] = np.asarray(cv2.remap(images[index], *maps, cv2.INTER_LINEAR))
    return straight


def visible(band: ArrayF32) -> ImageU8:
    """Convert a filtered frame to (H, W, 3) uint8, for key points."""
    spread = 4 * max(float(band.std()), 1e-3)
    grey = np.clip(128 + 127 * cv2.GaussianBlur(band, (0, 0), NCC_SIGMA) / spread, 0, 255)
    return np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)


def inner_view(mask: npt.NDArray[Any] | None, shape: tuple[int, ...]) -> ArrayBool:
    """(H, W) bool: the view without its static rim."""
    inside = checked_mask(mask, (shape[0], shape[1])).astype(np.uint8)
    rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
    return np.asarray(cv2.erode(inside, rim, borderValue=1) > 0)


def _ncc(a: ArrayF32, b: ArrayF32, a_from_b: npt.NDArray[Any], inside: ArrayBool) -> float | None:
    size = (a.shape[1], a.shape[0])
    warped = cv2.warpPerspective(b, a_from_b, size)
    inside_b = cv2.warpPerspective(inside.astype(np.uint8), a_from_b, size, flags=cv2.INTER_NEAREST)
    both = inside & inside_b.astype(np.bool_)
    if both.sum() < MIN_OVERLAP * inside.sum():
        return None
    x, y = a[both], warped[both]
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / max(float(np.sqrt((x * x).sum() * (y * y).sum())), 1e-9))
