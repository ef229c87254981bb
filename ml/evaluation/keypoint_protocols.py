"""The protocols of key point matching: the papers', a hard one, and images with nothing in common.

The papers' protocol (graph-ssl-endoscopic-matching, section 4.3): key points are detected in an
image and *projected* into its warped copy, so that every partner is present; a match is right
where its projection error is at most 5 px. It leaks position (partners sit at true places), so
the hard protocol detects in both images independently and asks for 3 px.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.evaluation.keypoint_data import EvaluationImage
from ml.evaluation.keypoint_metrics import PairMatches
from ml.evaluation.keypoint_pairs import Pair, as_u8
from ml.evaluation.keypoint_sides import SideCache, Sides
from ml.keypoints import (
    DetectorConfig,
    detect_keypoints,
    estimate_fundamental,
    estimate_transform,
    match_descriptors,
    transform_points,
)
from ml.keypoints.describe import CLASSICAL_NAMES, Descriptor
from ml.types import ArrayBool, ArrayF32, ImageU8, Keypoints, Matches

PAPER_PE_PX, HARD_PE_PX, CLOSE_PX = 5.0, 3.0, 1.0
EXACT_PX = 1e-3
"""SIFT finds some points twice, at two angles: nearer than this is the same place."""

CONTEXT_FREE = frozenset({*CLASSICAL_NAMES, "triplet", "cnn", "coordinates"})
"""Descriptors of a point that do not look at the other points of the image."""


class PointDescriptor(Protocol):
    """What the papers' protocol needs of a descriptor."""

    name: str

    def describe(self, image: ImageU8, xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """As ``Descriptor.describe``."""


@dataclass(slots=True)
class PointCache:
    """Key points by image and detector, and rows by image and descriptor, worked out once."""

    _points: dict[tuple[int, str, int], tuple[ImageU8, Keypoints]] = field(default_factory=dict)
    _rows: dict[tuple[int, str, int, str], tuple[ImageU8, ArrayF32]] = field(default_factory=dict)

    def points(
        self, image: ImageU8, detector: str, count: int, mask: ArrayBool | None
    ) -> Keypoints:
        """Key points of an image (the object counts, not its values)."""
        key = (id(image), detector, count)
        if key not in self._points:
            config = DetectorConfig(name=detector, max_keypoints=count)
            found = detect_keypoints(image, config=config, mask=as_u8(mask))
            self._points[key] = (image, found)
        return self._points[key][1]

    def rows(
        self, descriptor: PointDescriptor, image: ImageU8, detector: str, points: Keypoints
    ) -> ArrayF32:
        """Descriptors of all key points of an image, for descriptors without context."""
        key = (id(image), detector, len(points), descriptor.name)
        if key not in self._rows:
            rows = descriptor.describe(image, points.xy, points.response)
            self._rows[key] = (image, rows)
        return self._rows[key][1]

    def forget_rows(self) -> None:
        """Free the rows of a descriptor that is done."""
        self._rows.clear()


def papers_pair(
    descriptor: PointDescriptor, pair: Pair, *, detector: str, keypoints: int, cache: PointCache
) -> PairMatches:
    """Nearest neighbours of the key points of a among their exact projections in b.

    Both images are described by ``describe(image, xy, response)``: no scale and no angle is told.
    """
    points = cache.points(pair.a, detector, keypoints, pair.mask_a)
    partner, inside = pair.partners(points.xy)
    xy_b, response = partner[inside], points.response[inside]
    if descriptor.name in CONTEXT_FREE:
        rows_a = cache.rows(descriptor, pair.a, detector, points)[inside]
    else:
        rows_a = descriptor.describe(pair.a, points.xy[inside], response)
    rows_b = descriptor.describe(pair.b, xy_b, response)
    found, distance = match_descriptors(rows_a, rows_b, strategy="nn")
    error = np.hypot(*(xy_b[found[:, 1]] - xy_b[found[:, 0]]).T)
    return PairMatches(
        pair.family, pair.value, len(xy_b), distance, error <= PAPER_PE_PX, error <= EXACT_PX
    )


@dataclass(frozen=True, slots=True)
class HardScore:
    """One pair under the hard protocol.

    Attributes:
        matches, right, close: of ``match_images``: all, within 3 px, within 1 px of the truth.
        raw_matches, raw_right: of mutual nearest neighbours alone.
    """

    family: str
    value: float
    matches: int
    right: int
    close: int
    raw_matches: int
    raw_right: int


def hard_pair(
    descriptor: Descriptor, pair: Pair, *, name: str, keypoints: int, cache: SideCache
) -> HardScore:
    """Own detection in both images, matched by ``match_images`` and by mutual neighbours alone.

    Args:
        name: what ``match_images`` is asked for.
    """
    a, b = pair_sides(pair)
    found = cache.match(a, b, name, keypoints)
    raw = cache.mutual(a, b, descriptor, keypoints=keypoints)
    error, raw_error = projection_error(pair, found), projection_error(pair, raw)
    return HardScore(
        pair.family,
        pair.value,
        len(found),
        int((error <= HARD_PE_PX).sum()),
        int((error <= CLOSE_PX).sum()),
        len(raw),
        int((raw_error <= HARD_PE_PX).sum()),
    )


def pair_sides(pair: Pair) -> tuple[Sides, Sides]:
    """Both images of a pair with their masks."""
    return (pair.a, as_u8(pair.mask_a)), (pair.b, as_u8(pair.mask_b))


def projection_error(pair: Pair, matches: Matches) -> ArrayF32:
    """(M,) pixels in b between a match and the truth."""
    truth = transform_points(pair.H_b_from_a, matches.xy_a)
    return np.hypot(*(truth - matches.xy_b).T).astype(np.float32)


@dataclass(frozen=True, slots=True)
class CountScore:
    """How much was matched of one pair, without any truth.

    Attributes:
        matches, inliers: of ``match_images``, and of those agreeing on one epipolar geometry.
        planar: those agreeing on one homography.
        raw_matches, raw_inliers, raw_planar: the same of mutual nearest neighbours alone.
    """

    matches: int
    inliers: int
    planar: int
    raw_matches: int
    raw_inliers: int
    raw_planar: int


def count_pair(
    descriptor: Descriptor,
    a: EvaluationImage,
    b: EvaluationImage,
    *,
    name: str,
    keypoints: int,
    cache: SideCache,
) -> CountScore:
    """Matches and geometric inliers of two images, related or not.

    Source: dinov2-adaptation-endoscopic-matching, section IV-B (table II).
    """
    sides = (a.rgb, as_u8(a.mask)), (b.rgb, as_u8(b.mask))
    found = cache.match(*sides, name, keypoints)
    raw = cache.mutual(*sides, descriptor, keypoints=keypoints)
    return CountScore(
        len(found),
        epipolar_inliers(found),
        planar_inliers(found),
        len(raw),
        epipolar_inliers(raw),
        planar_inliers(raw),
    )


def epipolar_inliers(matches: Matches) -> int:
    """Matches that agree on one fundamental matrix by MAGSAC; 0 where there is none."""
    try:
        return int(estimate_fundamental(matches.xy_a, matches.xy_b).inliers.sum())
    except NotEnoughMatchesError:
        return 0


def planar_inliers(matches: Matches) -> int:
    """Matches that agree on one homography by MAGSAC; 0 where there is none."""
    try:
        return int(estimate_transform(matches.xy_a, matches.xy_b).inliers.sum())
    except NotEnoughMatchesError:
        return 0


class CoordinatesDescriptor:
    """The leak itself: a point's pixel coordinates as its descriptor."""

    name = "coordinates"

    def describe(self, image: ImageU8, xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """(N, 2) float32: the points, off zero, for a row of zeros stands for no descriptor."""
        return np.asarray(xy, np.float32) + np.float32(1.0)


def with_shuffled_positions(descriptor: Descriptor, *, seed: int) -> PointDescriptor | None:
    """A descriptor that is told the places of other key points, while patches stay.

    Every call permutes anew, so that two images share no place. None for descriptors that do not
    look at where points are: only those with a graph over the key points (``graph``) do.
    """
    graph = getattr(descriptor, "graph", None)
    if graph is None:
        return None
    shuffled: Any = copy.copy(descriptor)
    shuffled.name = f"{descriptor.name} shuffled"
    shuffled.graph = _ShuffledGraph(graph, np.random.default_rng(seed))
    return cast(PointDescriptor, shuffled)


class _ShuffledGraph:
    """A graph network whose second argument, (N, ...) positions, is permuted first."""

    def __init__(self, graph: Any, rng: np.random.Generator) -> None:
        self.config = graph.config
        self._graph, self._rng = graph, rng

    def __call__(self, vectors: Any, positions: Any) -> Any:
        return self._graph(vectors, positions[self._rng.permutation(len(positions))])
