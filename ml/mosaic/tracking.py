"""Tracking of an outline along the frames of a video by key points, until it is lost.

Every frame is matched to the last *anchor* (first the frame where the person drew), not to the
frame before: an error is made once, not once a frame. Where too few key points of the anchor are
seen any more, the last good frame becomes the anchor, and its error stays in all that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.geometry import transform_points
from ml.keypoints.features import ImageFeatures, extract
from ml.keypoints.pipeline import MatchConfig, match_features
from ml.keypoints.verification.estimation import estimate_transform
from ml.mosaic.frames.prefetch import prefetched_frames
from ml.types import ArrayF64, ImageU8, Transform

_PLAIN = MatchConfig(completion_rounds=0)
"""Two windows of one place have plenty of key points, and completing them is the costliest step."""


@dataclass(frozen=True, slots=True)
class TrackConfig:
    """Configuration of outline tracking.

    Attributes:
        descriptor: of ``ml.keypoints``; a hand-crafted one, since frames that follow one another
            look alike, and a network would take too long for each of them.
        margin: of the window on each side of the outline, as a share of its longer side.
        window_px: the window is at least this wide and high, for small outlines.
        max_keypoints: of a window.
        min_inliers: a frame is not believed if fewer agree on one motion.
        renew_share: the anchor is renewed where fewer than this share of its inliers are left.
        threshold_px: largest distance of an inlier from the position that the motion gives it.
        patience: frames in a row that may fail (blur, a reflex) before the outline is lost.
        drift_share: lost where the outline is less certain than this share of its size.
        growth: lost where its area changes by more than this factor against the first.
        inside_share: lost where less of its bounding box is in the frame.
        tolerance_px: largest distance of the outline interpolated between two key frames from
            the tracked one.
    """

    descriptor: str = "sift"
    margin: float = 0.75
    window_px: int = 160
    max_keypoints: int = 400
    min_inliers: int = 12
    renew_share: float = 0.4
    threshold_px: float = 3.0
    patience: int = 5
    drift_share: float = 0.1
    growth: float = 4.0
    inside_share: float = 0.5
    tolerance_px: float = 0.75


@dataclass(frozen=True, slots=True)
class TrackedOutline:
    """The outline on one frame.

    Attributes:
        index: of the frame.
        xy: (V, 2) float64, pixels, vertices in the order of the first frame.
        drift_px: standard error of its vertices, accumulated over the anchors.
        inliers: key points that agree on the motion.
    """

    index: int
    xy: ArrayF64
    drift_px: float
    inliers: int


@dataclass(frozen=True, slots=True)
class Track:
    """Positions of a tracked outline.

    Attributes:
        outlines: one per frame, the first as given; frames that failed are left out.
        lost: reason if it ended before the last frame ("too few key points agree", ...), else "".
    """

    outlines: tuple[TrackedOutline, ...]
    lost: str


def track_outline(
    frames: Iterable[tuple[int, ImageU8]], xy: ArrayF64, config: TrackConfig = TrackConfig()
) -> Track:
    """Track an outline along frames.

    Args:
        frames: (index, (H, W, 3) uint8 RGB) in the order to follow, the first where it was drawn.
        xy: (V, 2) float64, all vertices of the outline on the first frame, pixels.
    Returns:
        Track: ends at the last reliable frame if the outline is lost.
    """
    outlines: list[TrackedOutline] = []
    follower: _Follower | None = None
    failure_count = 0
    for index, image in prefetched_frames(frames):
        if follower is None:
            follower = _Follower(image, xy, config)
            outlines.append(TrackedOutline(index, xy, 0.0, 0))
            continue
        try:
            outlines.append(follower.follow(index, image))
            failure_count = 0
        except _LostError as error:
            failure_count += 1
            if failure_count > config.patience or error.is_final:
                return Track(tuple(outlines), str(error))
    return Track(tuple(outlines), "too few key points agree" if failure_count else "")


def key_outlines(track: Track, tolerance_px: float) -> Iterator[TrackedOutline]:
    """The fewest outlines, greedily, between which straight lines stay within a tolerance.

    The first and the last are among them. Interpolating them again is an independent check.
    """
    outlines = track.outlines
    start = 0
    yield outlines[0]
    while start < len(outlines) - 1:
        end = start + 1
        while end + 1 < len(outlines) and _is_straight(outlines[start : end + 2], tolerance_px):
            end += 1
        yield outlines[end]
        start = end


def _is_straight(run: tuple[TrackedOutline, ...], tolerance_px: float) -> bool:
    first, last = run[0], run[-1]
    span = last.index - first.index
    for outline in run[1:-1]:
        share = (outline.index - first.index) / span
        between = (1 - share) * first.xy + share * last.xy
        if np.hypot(*(between - outline.xy).T).max() > tolerance_px:
            return False
    return True


class _LostError(Exception):
    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class _Window:
    """A part of a frame: features of it, and its corner in the frame."""

    features: ImageFeatures
    corner: ArrayF64


class _Follower:
    def __init__(self, image: ImageU8, xy: ArrayF64, config: TrackConfig) -> None:
        self.config = config
        self.first_area = _area(xy)
        self.last_image, self.last = image, xy
        self.anchor_xy, self.anchor_drift = xy, 0.0
        self.last_drift = 0.0
        self.anchor = _window(image, xy, config)
        self.max_inliers = 0

    def follow(self, index: int, image: ImageU8) -> TrackedOutline:
        """Locate the outline on the next frame; raises ``_LostError``."""
        window = _window(image, self.last, self.config)
        try:
            located = self._locate(window)
            if located[2] < self.config.renew_share * self.max_inliers:
                raise _LostError("the anchor is nearly out of sight")
        except _LostError:
            self._renew()
            located = self._locate(window)
        xy, drift, inliers = located
        self._check(xy, drift, image)
        self.max_inliers = max(self.max_inliers, inliers)
        self.last_image, self.last, self.last_drift = image, xy, drift
        return TrackedOutline(index, xy, round(drift, 3), inliers)

    def _renew(self) -> None:
        self.anchor = _window(self.last_image, self.last, self.config)
        self.anchor_xy, self.anchor_drift, self.max_inliers = self.last, self.last_drift, 0

    def _locate(self, window: _Window) -> tuple[ArrayF64, float, int]:
        """Return the outline, its drift, and the number of key points that agree."""
        matches = match_features(self.anchor.features, window.features, config=_PLAIN)
        try:
            motion = estimate_transform(
                matches.xy_a, matches.xy_b, model="affine", threshold_px=self.config.threshold_px
            )
        except NotEnoughMatchesError:
            raise _LostError("too few key points agree") from None
        inliers = int(motion.inliers.sum())
        if inliers < self.config.min_inliers:
            raise _LostError("too few key points agree")
        local = self.anchor_xy - self.anchor.corner
        xy = transform_points(motion.matrix, local) + window.corner
        a, b = matches.xy_a[motion.inliers], matches.xy_b[motion.inliers]
        error = standard_error_px(a.astype(np.float64), b.astype(np.float64), motion, local)
        return xy, float(np.hypot(error, self.anchor_drift)), inliers

    def _check(self, xy: ArrayF64, drift: float, image: ImageU8) -> None:
        size = float(np.sqrt(max(self.first_area, 1.0)))
        ratio = _area(xy) / max(self.first_area, 1e-9)
        if not 1 / self.config.growth < ratio < self.config.growth:
            raise _LostError("its size changed implausibly")
        if drift > max(self.config.drift_share * size, 1.0):
            raise _LostError("its position has become too uncertain")
        if _inside(xy, image) < self.config.inside_share:
            raise _LostError("it left the picture", is_final=True)


def standard_error_px(xy_a: ArrayF64, xy_b: ArrayF64, motion: Transform, at: ArrayF64) -> float:
    """Root mean square standard error of an affine motion at given points.

    That of least squares, ``s sqrt(p (A' A)^-1 p')`` for each coordinate, with A the rows (x, y, 1)
    of the inliers and s their residual: large where points are few or on one side.

    Args:
        xy_a, xy_b: (N, 2) inliers.
        at: (V, 2) in the plane of a.
    """
    design = np.column_stack([xy_a, np.ones(len(xy_a))])
    residual = xy_b - transform_points(motion.matrix, xy_a)
    freedom = max(len(xy_a) - 3, 1)
    variance = float((residual**2).sum()) / (2 * freedom)
    inverse = np.linalg.pinv(design.T @ design)
    points = np.column_stack([at, np.ones(len(at))])
    spread = np.einsum("ni,ij,nj->n", points, inverse, points)
    return float(np.sqrt(2 * variance * spread.mean()))


def _window(image: ImageU8, xy: ArrayF64, config: TrackConfig) -> _Window:
    height, width = image.shape[:2]
    low, high = xy.min(0), xy.max(0)
    side = max(float((high - low).max()) * (1 + 2 * config.margin), config.window_px) / 2
    middle = (low + high) / 2
    left, top = np.clip(np.floor(middle - side), 0, [max(width - 32, 0), max(height - 32, 0)])
    right, bottom = np.minimum(np.ceil(middle + side), [width, height])
    part = image[
        int(top) : max(int(bottom), int(top) + 32), int(left) : max(int(right), int(left) + 32)
    ]
    features = extract(
        np.ascontiguousarray(part), descriptor=config.descriptor, max_keypoints=config.max_keypoints
    )
    return _Window(features, np.array([left, top], np.float64))


def _area(xy: ArrayF64) -> float:
    """Area of the bounding box; outlines of several rings have no single area."""
    low, high = xy.min(0), xy.max(0)
    return float(np.prod(high - low))


def _inside(xy: ArrayF64, image: ImageU8) -> float:
    """Share of the bounding box inside the image."""
    size = np.array([image.shape[1], image.shape[0]], np.float64)
    low, high = xy.min(0), xy.max(0)
    overlap_px = np.clip(np.minimum(high, size) - np.maximum(low, 0), 0, None)
    return float(np.prod(overlap_px) / max(np.prod(high - low), 1e-9))
