"""How well frames agree where they overlap: NCC, without what stands still on the lens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.evaluation.mosaic.asked import MOSAIC, PAIRS
from ml.evaluation.mosaic.baselines import sift_chain
from ml.keypoints.masks import checked_mask
from ml.mosaic import MosaicResult
from ml.mosaic.local_views import mesh_maps
from ml.mosaic.sources import open_source
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

DISTANCES = (1, 5, 20)
"""Frames apart: neighbours, and two distances at which small errors have added up."""
NCC_SIGMA, SHADING_SIGMA = 1.0, 6.0
"""px: the band that is compared lies between the sensor's noise and the light's fall-off."""
MIN_OVERLAP = 0.1
"""Share of the view: two frames that share less are not compared."""
MIN_PATTERN_FRAMES = 25
"""With fewer frames their median still holds the scene."""
RIM_PX = 10
"""Taken off the view's edge, which stands still and would agree with itself."""

Pairwise = Callable[[int, int], "npt.NDArray[Any] | None"]
"""(a, b) -> (3, 3) that maps frame b to frame a, or None if the method has none."""


def chained(placed: Mapping[int, npt.NDArray[Any]]) -> Pairwise:
    """The motion between any two frames that have a place in one plane."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        if a not in placed or b not in placed:
            return None
        return np.asarray(np.linalg.solve(placed[a], placed[b]))

    return between


def sift_pairs(frames: Mapping[int, ImageU8]) -> Pairwise:
    """Each pair matched by itself: what a chain of SIFT could reach at best."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        found = sift_chain([frames[a], frames[b]])
        return found.get(1)

    return between


def sweep_ncc(
    frames: Sequence[npt.NDArray[Any]],
    placed: Mapping[int, ArrayF64],
    meshes: Mapping[int, ArrayF64],
    *,
    mask: npt.NDArray[Any],
) -> dict[str, dict[str, float]]:
    """``ncc_table`` of frames as a mosaic has them, and of each pair matched by itself."""
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
    """Mean NCC of overlapping frames, the later warped onto the earlier, by distance."""
    scores = {}
    for distance in distances:
        values = []
        for f in sorted(images):
            if f + distance not in images:
                continue
            matrix = between(f, f + distance)
            if matrix is not None:
                values.append(_ncc(images[f], images[f + distance], matrix, inside))
        kept = [v for v in values if v is not None]
        scores[str(distance)] = round(float(np.mean(kept)), 4) if kept else float("nan")
    return scores


def clean_frames(frames: Path | Sequence[npt.NDArray[Any]]) -> dict[int, ArrayF32]:
    """Index -> (H, W) float32 that may be compared: without what stands still on the lens.

    The temporal median is taken off, so that a pattern fixed on the lens cannot reward "no
    motion", then all but the band from 1 to 6 px, where vessels are and shading is not.
    """
    greys = {
        frame.index: cv2.cvtColor(frame.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
        for frame in open_source(frames).frames()
        if frame.rgb is not None
    }
    # the median of a few frames still shows the scene, not the fixed pattern
    many = len(greys) >= MIN_PATTERN_FRAMES
    still = np.median(np.stack(list(greys.values())), axis=0) if many else np.float32(0)
    cleaned = {}
    for index, grey in greys.items():
        moving = np.asarray(grey - still, np.float32)
        band = cv2.GaussianBlur(moving, (0, 0), NCC_SIGMA)
        cleaned[index] = np.asarray(band - cv2.GaussianBlur(moving, (0, 0), SHADING_SIGMA))
    return cleaned


def meshes_of(result: MosaicResult) -> dict[int, ArrayF64]:
    """Frame index -> the mesh of each frame that has one."""
    return {frame.index: frame.mesh for frame in result.frames if frame.mesh is not None}


def straightened_frames(
    images: Mapping[int, ArrayF32], meshes: Mapping[int, ArrayF64]
) -> dict[int, ArrayF32]:
    """Cleaned frames as they would show a plane, by the meshes of those that have one."""
    straight = dict(images)
    for index in meshes.keys() & images.keys():
        height, width = images[index].shape
        maps = mesh_maps(meshes[index], (width, height))
        straight[index] = np.asarray(cv2.remap(images[index], *maps, cv2.INTER_LINEAR))
    return straight


def visible(band: ArrayF32) -> ImageU8:
    """A cleaned frame as (H, W, 3) uint8, so that key points see no fixed pattern either."""
    spread = 4 * max(float(band.std()), 1e-3)
    grey = np.clip(128 + 127 * cv2.GaussianBlur(band, (0, 0), NCC_SIGMA) / spread, 0, 255)
    return np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)


def inner_view(mask: npt.NDArray[Any] | None, shape: tuple[int, ...]) -> ArrayBool:
    """The view without its rim, which stands still."""
    inside = checked_mask(mask, (shape[0], shape[1])).astype(np.uint8)
    rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
    return np.asarray(cv2.erode(inside, rim, borderValue=1) > 0)


def _ncc(a: ArrayF32, b: ArrayF32, a_from_b: npt.NDArray[Any], inside: ArrayBool) -> float | None:
    size = (a.shape[1], a.shape[0])
    warped = cv2.warpPerspective(b, a_from_b, size)
    seen = cv2.warpPerspective(inside.astype(np.uint8), a_from_b, size, flags=cv2.INTER_NEAREST)
    both = inside & seen.astype(np.bool_)
    if both.sum() < MIN_OVERLAP * inside.sum():
        return None
    x, y = a[both], warped[both]
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / max(float(np.sqrt((x * x).sum() * (y * y).sum())), 1e-9))
