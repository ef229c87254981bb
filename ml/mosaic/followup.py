"""Find a place of one examination in the frames of another: match, verify, rank, draw.

A place is an outline with its surroundings. A frame shows it when enough matches agree on one
affine map of the neighbourhood (a wall bends very little over so small an area) and the map is
physically possible for a scope. The result is empty if no frame shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, NotEnoughMatchesError
from ml.geometry import transform_points
from ml.keypoints import match_images
from ml.keypoints.verification.estimation import estimate_transform
from ml.mosaic.frames.prefetch import prefetched_frames
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress


@dataclass(frozen=True, slots=True)
class FollowupConfig:
    """Configuration of the search for a place.

    Attributes:
        descriptor: name of ``ml.keypoints.load_descriptor``.
        max_keypoints: at most this many an image.
        threshold_px: largest reprojection error of an inlier, frame px.
        min_inliers, min_inlier_share: less agreement is taken for chance.
        max_zoom: largest change of scale, either way, and largest stretch of one axis.
        min_cells: inliers must lie in this many cells of a 4 x 4 grid over the place.
        max_hits: at most this many frames are returned.
    """

    descriptor: str = "default"
    max_keypoints: int = 1000
    threshold_px: float = 4.0
    min_inliers: int = 16
    min_inlier_share: float = 0.35
    max_zoom: float = 3.5
    min_cells: int = 4
    max_hits: int = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """A frame (or a window of a mosaic) to look in: ``key`` names it for the caller."""

    key: int
    image: ImageU8


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """A candidate that shows the place.

    Attributes:
        H_frame_from_place: (3, 3) float64, place px to candidate px; affine.
        outline_frame: (P, 2) float64, the place's outline on the candidate.
        xy_place, xy_frame: (M, 2) float32, the matches that agree.
        matches: number of matches before verification.
        score: inliers weighted by their share; larger is surer.
    """

    key: int
    H_frame_from_place: ArrayF64
    outline_frame: ArrayF64
    xy_place: ArrayF32
    xy_frame: ArrayF32
    matches: int
    score: float


DEFAULT_CONFIG = FollowupConfig()
GRID = 4
"""Cells a side, see ``FollowupConfig.min_cells``."""

LINES_SHOWN = 60
"""More lines between two pictures hide both."""

_OUTLINE, _LINE, _DOT = (255, 210, 63), (78, 225, 236), (255, 255, 255)  # RGB, unlike any tissue


def find_place(
    place: ImageU8,
    outline: npt.NDArray[np.floating],
    candidates: Iterable[Candidate],
    *,
    count: int = 0,
    config: FollowupConfig = DEFAULT_CONFIG,
    progress: Progress = no_progress,
) -> tuple[PlaceHit, ...]:
    """Find the candidates that show a place, the surest first.

    Args:
        place: (H, W, 3) uint8, the place with its surroundings.
        outline: (P, 2), P >= 3, px of ``place``.
        candidates: read one at a time, none stays in memory.
        count: how many there are, for ``progress`` (phase "search").
    Returns:
        At most ``config.max_hits`` hits.
    Raises:
        BadInputError: the outline has fewer than three corners.
    """
    corners = np.asarray(outline, np.float64)
    if corners.ndim != 2 or corners.shape[0] < 3 or corners.shape[1] != 2:
        raise BadInputError(f"outline: expected (P, 2) with P >= 3, got {corners.shape}")
    hits = []
    for number, candidate in enumerate(prefetched_frames(candidates)):
        progress(number, count, "search")
        if (hit := _verify(place, corners, candidate, config)) is not None:
            hits.append(hit)
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.key))[: config.max_hits])


def _verify(
    place: ImageU8, outline: ArrayF64, candidate: Candidate, config: FollowupConfig
) -> PlaceHit | None:
    matches = match_images(
        place, candidate.image, config.descriptor, max_keypoints=config.max_keypoints
    )
    if len(matches.xy_a) < config.min_inliers:
        return None
    try:
        fit = estimate_transform(
            matches.xy_a, matches.xy_b, model="affine", threshold_px=config.threshold_px
        )
    except NotEnoughMatchesError:
        return None
    agreeing, share = int(fit.inliers.sum()), float(fit.inliers.mean())
    xy_place = matches.xy_a[fit.inliers]
    if agreeing < config.min_inliers or share < config.min_inlier_share:
        return None
    if (
        not _is_plausible(fit.matrix, config)
        or _occupied_cell_count(xy_place, place) < config.min_cells
    ):
        return None
    outline_frame = transform_points(fit.matrix, outline)
    height, width = candidate.image.shape[:2]
    x, y = outline_frame.mean(axis=0)
    if not (0 <= x < width and 0 <= y < height):
        return None  # the candidate shows the surroundings, not the place
    xy_frame = matches.xy_b[fit.inliers]
    return PlaceHit(
        candidate.key,
        fit.matrix,
        outline_frame,
        xy_place,
        xy_frame,
        len(matches.xy_a),
        agreeing * share,
    )


def _is_plausible(matrix: ArrayF64, config: FollowupConfig) -> bool:
    """Return whether a map neither mirrors nor zooms or stretches beyond ``max_zoom``."""
    if np.linalg.det(matrix[:2, :2]) <= 0:
        return False
    large, small = np.linalg.svd(matrix[:2, :2], compute_uv=False)
    return bool(
        large < config.max_zoom and small > 1 / config.max_zoom and large / small < config.max_zoom
    )


def _occupied_cell_count(xy: ArrayF32, image: ImageU8) -> int:
    size = np.array([image.shape[1], image.shape[0]])
    cell = np.clip((xy / size * GRID).astype(int), 0, GRID - 1)
    return len(np.unique(cell[:, 1] * GRID + cell[:, 0]))


def draw_hit(
    place: ImageU8,
    outline: npt.NDArray[np.floating],
    frame: ImageU8,
    hit: PlaceHit,
    *,
    height_px: int = 480,
) -> ImageU8:
    """Draw place and frame side by side, with both outlines and lines between the matches.

    Returns:
        (height_px, W, 3) uint8 RGB; at most 60 lines, evenly picked.
    """
    left, left_scale = _scale_to_height(place, height_px)
    right, right_scale = _scale_to_height(frame, height_px)
    gap = 12
    canvas = np.zeros((height_px, left.shape[1] + gap + right.shape[1], 3), np.uint8)
    canvas[:, : left.shape[1]] = left
    canvas[:, left.shape[1] + gap :] = right
    shift = np.array([left.shape[1] + gap, 0])
    lines = np.linspace(0, len(hit.xy_place) - 1, min(LINES_SHOWN, len(hit.xy_place))).astype(int)
    starts = np.rint(hit.xy_place[lines] * left_scale).astype(int)
    ends = np.rint(hit.xy_frame[lines] * right_scale + shift).astype(int)
    layer = canvas.copy()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        cv2.line(layer, start, end, _LINE, 1, cv2.LINE_AA)
    canvas = np.asarray(cv2.addWeighted(layer, 0.6, canvas, 0.4, 0), np.uint8)
    for point in [*starts.tolist(), *ends.tolist()]:
        cv2.circle(canvas, point, 2, _DOT, -1, cv2.LINE_AA)
    _draw_outline(canvas, np.asarray(outline) * left_scale)
    _draw_outline(canvas, hit.outline_frame * right_scale + shift)
    return canvas


def _scale_to_height(image: ImageU8, height_px: int) -> tuple[ImageU8, float]:
    scale = height_px / image.shape[0]
    size = (max(1, round(image.shape[1] * scale)), height_px)
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, size, interpolation=interpolation), np.uint8), scale


def _draw_outline(canvas: ImageU8, corners: npt.NDArray[np.floating]) -> None:
    ring = np.rint(corners).astype(np.int32)
    cv2.polylines(canvas, [ring], True, (10, 16, 20), 5, cv2.LINE_AA)
    cv2.polylines(canvas, [ring], True, _OUTLINE, 2, cv2.LINE_AA)
