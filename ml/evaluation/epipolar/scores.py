"""Scores of pairs of a calibrated sequence against its poses, and their summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ml.errors import BadInputError, NotEnoughMatchesError
from ml.evaluation.common.features import FeatureCache, MaskedImage
from ml.evaluation.matching.metrics import fundamental_error, pose_auc, precision
from ml.evaluation.matching.pairs import as_u8
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.verification.estimation import estimate_fundamental, symmetric_epipolar_px
from ml.keypoints.verification.pose import estimate_pose
from ml.training.common.sequence import CalibratedSequence
from ml.types import ArrayF64, ImageU8, Matches

AUC_DEG = (5, 10, 20)
"""Limits of the pose error at which AUC is reported."""
NO_POSE_DEG = 180.0
"""Error of a pose that was not found: the largest possible."""
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class EpipolarScore:
    """Scores of one pair against the epipolar geometry of its poses; NaN without matches.

    Attributes:
        gap, first: frames apart, and the first frame.
        matches: of ``match_images``.
        epipolar_px: mean of eq. 16 over them.
        under_1px, under_3px: shares of matches whose mean distance to the two epipolar lines is
            below: half of eq. 16's term.
        under_1px_sum: the same of the term itself.
        fundamental_error: eq. 18 of the fundamental matrix of the matches.
        inliers: eq. 19, share of ``raw_matches`` that RANSAC keeps.
        raw_matches: mutual neighbours under the descriptor's ratio test, before any geometry.
        raw_epipolar_px, raw_under_1px, raw_under_3px: of those.
        pose_deg: larger of the errors of rotation and of the translation's direction, of the
            essential matrix by RANSAC at 1 px.
        pose_magsac_deg: the same by MAGSAC.
    """

    gap: int
    first: int
    matches: int
    epipolar_px: float
    under_1px: float
    under_3px: float
    under_1px_sum: float
    fundamental_error: float
    inliers: float
    raw_matches: int
    raw_epipolar_px: float
    raw_under_1px: float
    raw_under_3px: float
    pose_deg: float
    pose_magsac_deg: float


@dataclass(slots=True)
class FrameCache:
    """Cache of the frames of a sequence, and of their features by the current descriptor."""

    sequence: CalibratedSequence
    keypoints: int
    _frames: dict[int, ImageU8] = field(default_factory=dict)
    _features: FeatureCache = field(default_factory=FeatureCache)
    _name: str = ""

    def frame(self, index: int) -> ImageU8:
        """(H, W, 3) RGB."""
        if index not in self._frames:
            self._frames[index] = self.sequence.read(index)
        return self._frames[index]

    def masked(self, index: int) -> MaskedImage:
        """A frame with the sequence's mask."""
        return self.frame(index), as_u8(self.sequence.mask)

    def match(self, a: int, b: int, name: str) -> Matches:
        """Match two frames by ``match_images``."""
        return self._cache_of(name).match(self.masked(a), self.masked(b), name, self.keypoints)

    def raw_matches(self, a: int, b: int, name: str, descriptor: Descriptor) -> Matches:
        """Match two frames by mutual neighbours under the descriptor's ratio test."""
        return self._cache_of(name).mutual(
            self.masked(a),
            self.masked(b),
            descriptor,
            keypoints=self.keypoints,
            ratio=descriptor.ratio,
        )

    def _cache_of(self, name: str) -> FeatureCache:
        """Cache of a descriptor, which replaces that of another one."""
        if name != self._name:
            self._name, self._features = name, FeatureCache()
        return self._features


def score_pair(
    cache: FrameCache, a: int, b: int, *, name: str, descriptor: Descriptor
) -> EpipolarScore:
    """Match frames a and b and compare with the epipolar geometry of their poses.

    Source: dinov2-adaptation-endoscopic-matching, eq. 16-19; departs from eq. 17 by halving the
        symmetric sum, so that the threshold is a distance in px in one image (the sum is reported
        as well), and from eq. 18 as described in ``fundamental_error``.
    """
    matches = cache.match(a, b, name)
    return scored(cache.sequence, a, b, matches, cache.raw_matches(a, b, name, descriptor))


def scored(
    sequence: CalibratedSequence, a: int, b: int, matches: Matches, raw: Matches
) -> EpipolarScore:
    """Score matches of frames a and b, and raw matches without geometry, against their poses."""
    truth = sequence.fundamental(a, b)
    epipolar_px, under_1px, under_3px, under_1px_sum = epipolar_rates(truth, matches)
    raw_px, raw_under_1px, raw_under_3px, _ = epipolar_rates(truth, raw)
    return EpipolarScore(
        gap=b - a,
        first=a,
        matches=len(matches),
        epipolar_px=epipolar_px,
        under_1px=under_1px,
        under_3px=under_3px,
        under_1px_sum=under_1px_sum,
        fundamental_error=_fundamental_error(truth, matches),
        inliers=inlier_share(raw),
        raw_matches=len(raw),
        raw_epipolar_px=raw_px,
        raw_under_1px=raw_under_1px,
        raw_under_3px=raw_under_3px,
        pose_deg=pose_error_deg(sequence, a, b, matches),
        pose_magsac_deg=pose_error_deg(sequence, a, b, matches, method="magsac"),
    )


def epipolar_rates(truth: ArrayF64, matches: Matches) -> tuple[float, float, float, float]:
    """Mean of eq. 16, shares of its half under 1 and 3 px, share of itself under 1 px."""
    if not len(matches):
        return NAN, NAN, NAN, NAN
    distance = symmetric_epipolar_px(truth, matches.xy_a, matches.xy_b)
    half = distance / 2
    return (
        float(distance.mean()),
        float((half < 1).mean()),
        float((half < 3).mean()),
        float((distance < 1).mean()),
    )


def inlier_share(matches: Matches) -> float:
    """Share of matches that agree on one fundamental matrix (eq. 19); NaN without matches."""
    try:
        inlier_count = estimate_fundamental(
            matches.xy_a, matches.xy_b, method="ransac"
        ).inliers.sum()
    except NotEnoughMatchesError:
        inlier_count = 0
    return precision(int(inlier_count), len(matches))


def pose_error_deg(
    sequence: CalibratedSequence, a: int, b: int, matches: Matches, *, method: str = "ransac"
) -> float:
    """Larger of the errors of rotation and translation direction; 180 without a pose.

    An essential matrix does not fix the sign of the translation: the better one counts.
    """
    try:
        pose = estimate_pose(matches.xy_a, matches.xy_b, sequence.camera, method=method)
    except NotEnoughMatchesError:
        return NO_POSE_DEG
    poses = sequence.world_from_camera
    truth = np.linalg.inv(poses[b]) @ poses[a]
    turn = _angle_deg((np.trace(truth[:3, :3].T @ pose.rotation) - 1) / 2)
    along = truth[:3, 3] / max(float(np.linalg.norm(truth[:3, 3])), 1e-12)
    direction = _angle_deg(float(np.dot(along, pose.direction)))
    return max(turn, min(direction, 180 - direction))


def gap_pairs(sequence: CalibratedSequence, gap: int, count: int) -> list[tuple[int, int]]:
    """At most ``count`` evenly spaced pairs of frames ``gap`` apart.

    Raises:
        BadInputError: the sequence is too short.
    """
    last = len(sequence.frames) - 1 - gap
    if gap < 1 or last < 0:
        raise BadInputError(
            f"gap {gap}: expected 1 to {len(sequence.frames) - 1}, as there are"
            f" {len(sequence.frames)} frames"
        )
    starts = np.unique(np.linspace(0, last, max(count, 1)).round().astype(int))
    return [(int(start), int(start) + gap) for start in starts]


MEANS = (
    "matches",
    "epipolar_px",
    "under_1px",
    "under_3px",
    "under_1px_sum",
    "fundamental_error",
    "inliers",
    "raw_matches",
    "raw_epipolar_px",
    "raw_under_1px",
    "raw_under_3px",
)


def summary(scores: Sequence[EpipolarScore]) -> dict[str, float]:
    """Summarise pairs; pairs without matches have no part in the means.

    Returns:
        ``MEANS``; ``epipolar_px_sd``; ``auc_5deg`` ..., ``magsac_auc_5deg`` ...;
        ``partner_found``, the share of pairs with any match; ``pairs``.
    """
    table: dict[str, float] = {"pairs": len(scores)}
    for key in MEANS:
        table[key] = _mean([getattr(score, key) for score in scores])
    errors = np.array([s.epipolar_px for s in scores if s.matches], np.float64)
    table["epipolar_px_sd"] = round(float(errors.std()), 4) if len(errors) else NAN
    table["partner_found"] = round(float(np.mean([s.matches > 0 for s in scores])), 4)
    for limit in AUC_DEG:
        table[f"auc_{limit}deg"] = round(pose_auc([s.pose_deg for s in scores], limit), 4)
        errors_deg = [s.pose_magsac_deg for s in scores]
        table[f"magsac_auc_{limit}deg"] = round(pose_auc(errors_deg, limit), 4)
    return table


def t_test(scores_a: Sequence[EpipolarScore], scores_b: Sequence[EpipolarScore]) -> float:
    """p of a paired t-test of the epipolar errors over pairs matched by both; NaN below 3.

    Source: dinov2-adaptation-endoscopic-matching, table I; it does not say whether paired.
    """
    from scipy import stats

    both = [
        (a.epipolar_px, b.epipolar_px)
        for a, b in zip(scores_a, scores_b, strict=True)
        if a.matches and b.matches
    ]
    if len(both) < 3:
        return NAN
    a, b = np.array(both).T
    if np.allclose(a, b):
        return 1.0
    return float(stats.ttest_rel(a, b).pvalue)


def _fundamental_error(truth: ArrayF64, matches: Matches) -> float:
    try:
        estimate = estimate_fundamental(matches.xy_a, matches.xy_b).matrix
    except NotEnoughMatchesError:
        return NAN
    return fundamental_error(estimate, truth)


def _mean(values: list[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return round(float(np.mean(finite)), 4) if finite else NAN


def _angle_deg(cosine: float) -> float:
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
