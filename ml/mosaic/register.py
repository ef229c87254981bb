"""Stage 2, register: link each usable frame to a few before it by matched key points."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import cv2
import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.keypoints import DetectorConfig, detect_keypoints, estimate_transform, load_descriptor
from ml.keypoints.describe import Descriptor
from ml.keypoints.detect import select_even
from ml.keypoints.masks import specular_mask
from ml.keypoints.match import match_mutual
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames import Survey, usable_frames, work_grey
from ml.mosaic.sources import FrameSource
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8, Keypoints, Progress

RIM_PX = 10
LINK_POINTS = 60
STATIC_PX = 0.5
FIBRE_SIGMA, PLAIN_SIGMA = 2.0, 1.0


@dataclass(frozen=True, slots=True)
class Features:
    """A frame's key points with what is compared.

    Attributes:
        rows: (N, D) descriptors, float32, or float16 once kept for long.
        colour: (N, 3) log brightness around each, by channel.
    """

    frame: int
    keypoints: Keypoints
    rows: np.ndarray
    colour: ArrayF32


@dataclass(frozen=True, slots=True)
class Link:
    """Matched points of two frames, at working size.

    Attributes:
        a, b: positions of the frames in the source.
        xy_a, xy_b: (P, 2) float32 inliers, at most ``LINK_POINTS``, spatially even.
        matrix: (3, 3) float64 mapping a to b.
        inliers: how many agreed before thinning.
        log_gain: (3,) float32, mean log brightness of b over a, by channel.
    """

    a: int
    b: int
    xy_a: ArrayF32
    xy_b: ArrayF32
    matrix: ArrayF64
    inliers: int
    log_gain: ArrayF32


@dataclass(frozen=True, slots=True)
class Registration:
    """All links found, the key frames' features for long-range links, and the model chosen."""

    links: tuple[Link, ...]
    key_frames: tuple[Features, ...]
    model: str


def register_frames(
    source: FrameSource, survey: Survey, *, config: MosaicConfig, progress: Progress
) -> Registration:
    """Link every usable frame to those ``config.skips`` usable frames before it.

    Memory holds the features of the last ``max(skips)`` frames and at most
    ``config.max_key_frames`` key frames.
    """
    descriptor = load_descriptor(config.descriptor)
    recent: deque[Features] = deque(maxlen=max(config.skips))
    links: list[Link] = []
    keys = _KeyFrames(config.max_key_frames)
    model = config.model
    pending: list[tuple[Features, Features]] = []
    total = sum(not check.reason for check in survey.checks)
    for done, (position, rgb) in enumerate(usable_frames(source, survey)):
        progress(done, total, "register")
        features = describe_frame(position, rgb, survey, config=config, descriptor=descriptor)
        pairs = [(features, recent[-skip]) for skip in config.skips if skip <= len(recent)]
        recent.append(features)
        keys.add(features)
        if model == "auto":
            pending += pairs
            if done + 1 < min(total, 30):
                continue
            model, pairs, pending = choose_model(pending, descriptor, config), pending, []
        links += _linked(pairs, descriptor, model, config)
    if model == "auto":
        model = "affine"
    return Registration(tuple(links), tuple(keys.kept), model)


def describe_frame(
    position: int, rgb: ImageU8, survey: Survey, *, config: MosaicConfig, descriptor: Descriptor
) -> Features:
    """Key points and descriptors of one frame, the lens' fixed pattern taken off before."""
    grey = prepared_grey(rgb, survey)
    detector = DetectorConfig(name=descriptor.detector, max_keypoints=config.max_keypoints)
    inside = cv2.erode(
        survey.mask.astype(np.uint8),
        np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8),
        borderValue=1,
    )
    lit = cv2.resize(specular_mask(rgb).astype(np.uint8), (grey.shape[1], grey.shape[0]))
    keypoints = detect_keypoints(grey, config=detector, mask=(inside > 0) & (lit == 0))
    rows = descriptor.describe_keypoints(grey, keypoints)
    small = cv2.resize(rgb, (grey.shape[1] // 4, grey.shape[0] // 4), interpolation=cv2.INTER_AREA)
    at = np.clip((keypoints.xy / 4).astype(np.int64), 0, (small.shape[1] - 1, small.shape[0] - 1))
    colour = np.log(small[at[:, 1], at[:, 0]].astype(np.float32) + 4.0)
    return Features(position, keypoints, rows, colour)


def prepared_grey(rgb: ImageU8, survey: Survey) -> ImageU8:
    """Working grey without the fixed pattern, low-passed so that fibres leave no key point."""
    grey = work_grey(rgb, survey.scale).astype(np.float32)
    sigma = FIBRE_SIGMA if survey.is_fibre else PLAIN_SIGMA
    if survey.is_fibre:
        grey = grey - survey.pattern
    smooth = cv2.GaussianBlur(grey, (0, 0), sigma)
    return np.clip(smooth, 0, 255).astype(np.uint8)


def link_frames(
    a: Features, b: Features, *, descriptor: Descriptor, model: str, config: MosaicConfig
) -> Link | None:
    """Match two frames; None where too few points agree on a plausible motion."""
    rows_a, rows_b = a.rows.astype(np.float32, copy=False), b.rows.astype(np.float32, copy=False)
    pairs, score = match_mutual(rows_a, rows_b, ratio=descriptor.ratio)
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    moving = _moving(xy_a, xy_b)
    pairs, score, xy_a, xy_b = pairs[moving], score[moving], xy_a[moving], xy_b[moving]
    try:
        found = estimate_transform(xy_a, xy_b, model=model, threshold_px=config.threshold_px)
    except NotEnoughMatchesError:
        return None
    inliers = int(found.inliers.sum())
    enough = max(config.min_inliers, config.min_inlier_share * len(xy_a))
    if inliers < enough or not is_plausible(found.matrix, xy_a[found.inliers]):
        return None
    keep = _thinned(xy_a, found.inliers, score)
    used = pairs[found.inliers]
    gain = np.median(b.colour[used[:, 1]] - a.colour[used[:, 0]], axis=0).astype(np.float32)
    return Link(a.frame, b.frame, xy_a[keep], xy_b[keep], found.matrix, inliers, gain)


def choose_model(
    pairs: list[tuple[Features, Features]], descriptor: Descriptor, config: MosaicConfig
) -> str:
    """The simplest model that keeps nearly all the inliers of the next richer one.

    A homography must explain a tenth more points than an affine map, and that a twentieth more
    than a similarity: richer models drift faster along a chain.
    """
    sample = pairs[:: max(1, len(pairs) // 40)]
    counts = {}
    for model in ("similarity", "affine", "homography"):
        found = _linked(sample, descriptor, model, config)
        counts[model] = sum(link.inliers for link in found)
    if counts["homography"] > 1.1 * counts["affine"]:
        return "homography"
    return "affine" if counts["affine"] > 1.05 * counts["similarity"] else "similarity"


def is_plausible(matrix: ArrayF64, xy: ArrayF32) -> bool:
    """Two frames near in time differ by less than half or double the size, and little shear."""
    centre = xy.mean(axis=0).astype(np.float64)
    w = matrix[2] @ np.array([*centre, 1.0])
    if w <= 0.2 or w >= 5:
        return False
    mapped = (matrix @ np.array([*centre, 1.0]))[:2] / w
    jacobian = (matrix[:2, :2] - np.outer(mapped, matrix[2, :2])) / w
    largest, smallest = np.linalg.svd(jacobian, compute_uv=False)
    return bool(smallest > 0.5 and largest < 2.0 and largest / smallest < 1.6)


def _linked(
    pairs: list[tuple[Features, Features]], descriptor: Descriptor, model: str, config: MosaicConfig
) -> list[Link]:
    found = (link_frames(a, b, descriptor=descriptor, model=model, config=config) for a, b in pairs)
    return [link for link in found if link is not None]


def _moving(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayBool:
    """Without the points that stand still, where most of the others move: dirt on the lens."""
    shift = np.hypot(*(xy_a - xy_b).T)
    static = shift < STATIC_PX
    rest = shift[~static]
    if len(rest) >= 20 and len(rest) > static.sum() and np.median(rest) > 4 * STATIC_PX:
        return np.asarray(~static)
    return np.ones(len(shift), np.bool_)


def _thinned(xy: ArrayF32, inliers: ArrayBool, score: ArrayF32) -> np.ndarray:
    """Indices of at most LINK_POINTS inliers, spread evenly over the frame."""
    rows = np.flatnonzero(inliers)
    points = Keypoints(xy[rows], score[rows], rows.astype(np.float32), score[rows])
    extent = tuple((xy.max(axis=0) + 1).astype(int)[::-1].tolist())
    even = select_even(points, shape=extent, count=LINK_POINTS, cells=LINK_POINTS)
    return np.sort(even.size_px.astype(np.int64))


class _KeyFrames:
    """Every n-th frame's features; n doubles whenever the cap is reached."""

    def __init__(self, cap: int) -> None:
        self.kept: list[Features] = []
        self._cap, self._every, self._seen = max(cap, 2), 3, 0

    def add(self, features: Features) -> None:
        if self._seen % self._every == 0:
            self.kept.append(replace(features, rows=features.rows.astype(np.float16)))
            if len(self.kept) > self._cap:
                self.kept = self.kept[::2]
                self._every *= 2
        self._seen += 1
