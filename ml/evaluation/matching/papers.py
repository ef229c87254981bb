"""The papers' protocol of key point matching: key points and their exact projections.

Key points are detected in an image and *projected* into its warped copy, so that every partner is
present; a match is right where its projection error is at most 5 px. Partners have their true
positions, so a descriptor that encodes position scores too well.

Source: graph-ssl-endoscopic-matching, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ml.evaluation.matching.metrics import PairMatches
from ml.evaluation.matching.pairs import WarpedPair, as_u8
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints, take
from ml.keypoints.match import match_descriptors
from ml.keypoints.projection import project_keypoints
from ml.types import ArrayBool, ArrayF32, ImageU8, Keypoints

PAPER_PE_PX = 5.0
"""Largest projection error of a right match."""
EXACT_PX = 1e-3
"""Largest distance of one point found twice, as by SIFT at two angles."""

CONTEXT_FREE = frozenset({*CLASSICAL_NAMES, "triplet", "cnn", "vit", "tessera"})
"""Descriptors that do not depend on the other points of the image: all but ``graph``."""


@dataclass(slots=True)
class PointCache:
    """Cache of key points by image and detector, and of their rows by descriptor."""

    _points: dict[tuple[int, str, int], tuple[ImageU8, Keypoints]] = field(default_factory=dict)
    _rows: dict[tuple[int, str, int, str], tuple[ImageU8, ArrayF32]] = field(default_factory=dict)

    def points(
        self, image: ImageU8, detector: str, count: int, mask: ArrayBool | None
    ) -> Keypoints:
        """Key points of an image; the object is the key, not its values."""
        key = (id(image), detector, count)
        if key not in self._points:
            config = DetectorConfig(name=detector, max_keypoints=count)
            keypoints = detect_keypoints(image, config=config, mask=as_u8(mask))
            self._points[key] = (image, keypoints)
        return self._points[key][1]

    def rows(
        self, descriptor: Descriptor, image: ImageU8, detector: str, points: Keypoints
    ) -> ArrayF32:
        """Descriptors of all key points of an image, for descriptors without context."""
        key = (id(image), detector, len(points), descriptor.name)
        if key not in self._rows:
            rows = descriptor.describe(image, points.xy, points.response)
            self._rows[key] = (image, rows)
        return self._rows[key][1]


def papers_pair(
    descriptor: Descriptor,
    pair: WarpedPair,
    *,
    detector: str,
    keypoints: int,
    cache: PointCache,
) -> PairMatches:
    """Match the key points of a with the nearest of their exact projections in b.

    Both images are described by ``describe(image, xy, response)``, without scale or angle.
    """
    points = cache.points(pair.a, detector, keypoints, pair.mask_a)
    partner, inside = pair.partners(points.xy)
    xy_b, response = partner[inside], points.response[inside]
    if descriptor.name in CONTEXT_FREE:
        rows_a = cache.rows(descriptor, pair.a, detector, points)[inside]
    else:
        rows_a = descriptor.describe(pair.a, points.xy[inside], response)
    rows_b = descriptor.describe(pair.b, xy_b, response)
    return _match_rows(pair, rows_a, rows_b, xy_b)


def carried_pair(
    descriptor: ClassicalDescriptor, pair: WarpedPair, *, keypoints: int, cache: PointCache
) -> PairMatches:
    """Match as ``papers_pair`` with a hand-crafted descriptor in its best form.

    The key points are those of its own detector; b is described at the size and angle that the
    true transform gives those of a.
    """
    detected = cache.points(pair.a, descriptor.detector, keypoints, pair.mask_a)
    partner, inside = pair.partners(detected.xy)
    points = take(detected, inside)
    projected = project_keypoints(points, pair.H_b_from_a, partner[inside])
    rows_a = descriptor.describe_keypoints(pair.a, points)
    rows_b = descriptor.describe_keypoints(pair.b, projected)
    return _match_rows(pair, rows_a, rows_b, projected.xy)


def _match_rows(
    pair: WarpedPair, rows_a: ArrayF32, rows_b: ArrayF32, xy_b: ArrayF32
) -> PairMatches:
    """Nearest neighbours of rows whose partners have the same index."""
    pairs, distance = match_descriptors(rows_a, rows_b, strategy="nn")
    error = np.hypot(*(xy_b[pairs[:, 1]] - xy_b[pairs[:, 0]]).T)
    return PairMatches(
        pair.family, pair.value, len(xy_b), distance, error <= PAPER_PE_PX, error <= EXACT_PX
    )
