"""The hard protocol of key point matching, and unrelated images.

The papers' protocol leaks position (see ``papers``). The hard one detects in both images
independently and requires 3 px; unrelated images should give no match.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.evaluation.common.features import FeatureCache, MaskedImage
from ml.evaluation.common.images import EvaluationImage
from ml.evaluation.matching.pairs import WarpedPair, as_u8
from ml.geometry import transform_points
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.verification.estimation import estimate_fundamental, estimate_transform
from ml.types import ArrayF32, Matches

HARD_PE_PX, CLOSE_PX = 3.0, 1.0
"""Largest errors of a right and of a close match."""


@dataclass(frozen=True, slots=True)
class HardScore:
    """One pair under the hard protocol.

    Attributes:
        matches, right, close: matches of ``match_images``: all, within 3 px, within 1 px.
        raw_matches, raw_right: the same of mutual nearest neighbours.
    """

    family: str
    value: float
    matches: int
    right: int
    close: int
    raw_matches: int
    raw_right: int


def hard_pair(
    descriptor: Descriptor, pair: WarpedPair, *, name: str, keypoints: int, cache: FeatureCache
) -> HardScore:
    """Detect in both images, and match by ``match_images`` and by mutual neighbours.

    Args:
        name: of the descriptor, for ``match_images``.
    """
    a, b = masked_images(pair)
    matches = cache.match(a, b, name, keypoints)
    raw = cache.mutual(a, b, descriptor, keypoints=keypoints)
    error, raw_error = projection_error(pair, matches), projection_error(pair, raw)
    return HardScore(
        pair.family,
        pair.value,
        len(matches),
        int((error <= HARD_PE_PX).sum()),
        int((error <= CLOSE_PX).sum()),
        len(raw),
        int((raw_error <= HARD_PE_PX).sum()),
    )


def masked_images(pair: WarpedPair) -> tuple[MaskedImage, MaskedImage]:
    """Both images of a pair with their masks."""
    return (pair.a, as_u8(pair.mask_a)), (pair.b, as_u8(pair.mask_b))


def projection_error(pair: WarpedPair, matches: Matches) -> ArrayF32:
    """(M,) distances in pixels of b between matches and the truth."""
    truth = transform_points(pair.H_b_from_a, matches.xy_a)
    return np.asarray(np.hypot(*(truth - matches.xy_b).T), np.float32)


@dataclass(frozen=True, slots=True)
class CountScore:
    """Number of matches of one pair, without any truth.

    Attributes:
        matches, inliers: of ``match_images``, and of those agreeing on one epipolar geometry.
        planar: those agreeing on one homography.
        raw_matches, raw_inliers, raw_planar: the same of mutual nearest neighbours only.
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
    cache: FeatureCache,
) -> CountScore:
    """Matches and geometric inliers of two images, related or not.

    Source: dinov2-adaptation-endoscopic-matching, section IV-B (table II).
    """
    images = (a.rgb, as_u8(a.mask)), (b.rgb, as_u8(b.mask))
    matches = cache.match(*images, name, keypoints)
    raw = cache.mutual(*images, descriptor, keypoints=keypoints)
    return CountScore(
        len(matches),
        epipolar_inliers(matches),
        planar_inliers(matches),
        len(raw),
        epipolar_inliers(raw),
        planar_inliers(raw),
    )


def epipolar_inliers(matches: Matches) -> int:
    """Matches that agree on one fundamental matrix by MAGSAC; 0 if there is none."""
    try:
        return int(estimate_fundamental(matches.xy_a, matches.xy_b).inliers.sum())
    except NotEnoughMatchesError:
        return 0


def planar_inliers(matches: Matches) -> int:
    """Matches that agree on one homography by MAGSAC; 0 if there is none."""
    try:
        return int(estimate_transform(matches.xy_a, matches.xy_b).inliers.sum())
    except NotEnoughMatchesError:
        return 0
