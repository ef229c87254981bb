"""Matching of two images: detection, description, matching, verification, refinement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints.credibility import (
    CredibilityConfig,
    has_fixed_pattern,
    is_credible,
    is_slow,
    moves_with_scene,
)
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.features import ImageFeatures, extract_view, load_stages
from ml.keypoints.match import match_mutual
from ml.keypoints.parallel import run_both
from ml.keypoints.verification.completion import (
    CompletionConfig,
    SmoothPair,
    complete_matches,
    far_from,
    refine_matches,
    smooth_pair,
)
from ml.keypoints.verification.guided import guided_matches
from ml.keypoints.verification.local_affine import LocalAffineConfig, consistent_matches
from ml.keypoints.verification.two_view_model import SLACK_PX, TwoViewModel, find_two_view_model
from ml.keypoints.views import working_view
from ml.types import ArrayBool, ArrayF32, ArrayI64, Keypoints, Matches

SAME_PX_A, SAME_PX_B = 0.5, 2.0
"""Largest distance of a key point to a match that it belongs to; larger in b, where refinement
moves the points."""


@dataclass(frozen=True, slots=True)
class MatchConfig:
    """Configuration of matching; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        tentative_ratio: Ratio test of the first pass; 1 accepts all mutual pairs.
        local_affine: Verification by neighbours.
        credibility: Required matches.
        slack_px: Largest distance of a match from the motion field of the others.
        guided_radius_px: Smallest search radius of the second pass around predicted positions.
        guided_ratio: Ratio test among the candidates.
        guided_quantile: Quantile of the descriptor distances of the first pass that limits guided
            matches.
        is_refined: Align positions in b with sub-pixel precision.
        completion_rounds: Number of rounds in which unmatched key points are searched in the other
            image by alignment, without descriptors; 0 for matches of key points only.
        completion: Limits of trusted alignments.
    """

    tentative_ratio: float = 0.95
    local_affine: LocalAffineConfig = field(default_factory=LocalAffineConfig)
    credibility: CredibilityConfig = field(default_factory=CredibilityConfig)
    slack_px: float = SLACK_PX
    guided_radius_px: float = 3.0
    guided_ratio: float = 0.9
    guided_quantile: float = 0.95
    is_refined: bool = True
    completion_rounds: int = 2
    completion: CompletionConfig = field(default_factory=CompletionConfig)


def match_images(
    image_a: npt.NDArray[Any],
    image_b: npt.NDArray[Any],
    descriptor: str = "default",
    detector: str | None = None,
    max_keypoints: int = 1000,
    *,
    mask_a: npt.NDArray[Any] | None = None,
    mask_b: npt.NDArray[Any] | None = None,
    config: MatchConfig = MatchConfig(),
) -> Matches:
    """Match the key points of two images and reject outliers by their geometry.

    Args:
        image_a, image_b: (H, W[, 1|3|4]), any size and bit depth each.
        descriptor: See ``load_descriptor``.
        detector: One of ``detect.DETECTOR_NAMES``; None for the default of the descriptor.
        max_keypoints: Largest number of key points per image, and of matches.
        mask_a, mask_b: (H, W), allowed area: True, or above 127; None for all. Key points are
            always inside the estimated field of view.
        config: Stages after the descriptor.
    Returns:
        Matches: 0 <= M <= max_keypoints pairs, strongest first; score in [0, 1]. Empty if the
        images have too little in common. A pair is a key point of a and an aligned key point of b;
        or, with ``config.completion_rounds``, a key point of either image and its position in the
        other by alignment.
    Raises:
        UnknownNameError: Unknown descriptor or detector.
        BadInputError: ``max_keypoints`` below 1.
        ShapeError: Not an image.
    """
    loaded, detection = load_stages(descriptor, detector, max_keypoints)
    view_a = working_view(image_a, mask=mask_a, name="image_a")
    view_b = working_view(image_b, mask=mask_b, name="image_b")
    a, b = run_both(lambda view: extract_view(view, loaded, detection), view_a, view_b)
    return match_features(a, b, config=config)


def match_features(
    features_a: ImageFeatures, features_b: ImageFeatures, *, config: MatchConfig = MatchConfig()
) -> Matches:
    """Match the features of two images, the stages of ``match_images`` after the descriptor.

    Returns:
        Matches: Equal to those of ``match_images``; at most the larger ``max_keypoints`` of both.
    Raises:
        BadInputError: Features of different descriptors.
    """
    a, b = features_a, features_b
    if a.descriptor != b.descriptor:
        raise BadInputError(
            f"features_b: expected descriptors of {a.descriptor!r} like features_a,"
            f" got {b.descriptor!r}"
        )
    matches = _match_views(a, b, config)
    order = np.argsort(-matches.score, kind="stable")[: max(a.max_keypoints, b.max_keypoints)]
    return Matches(
        a.view.to_image(matches.xy_a[order]),
        b.view.to_image(matches.xy_b[order]),
        matches.score[order],
    )


def match_keypoints(
    descriptor: Descriptor,
    image_a: npt.NDArray[Any],
    points_a: Keypoints,
    image_b: npt.NDArray[Any],
    points_b: Keypoints,
) -> Matches:
    """Describe and match given key points by mutual check and ratio test, without geometry."""
    rows_a = descriptor.describe_keypoints(image_a, points_a)
    rows_b = descriptor.describe_keypoints(image_b, points_b)
    pairs, score = match_mutual(rows_a, rows_b, ratio=descriptor.ratio)
    return Matches(points_a.xy[pairs[:, 0]], points_b.xy[pairs[:, 1]], score)


@dataclass(frozen=True, slots=True)
class FirstPass:
    """Mutual neighbours after the ratio test, and a mask of the consistent ones.

    Attributes:
        pairs: (K, 2) int64, key points of a and b.
        score: (K,) float32.
        keep: (K,) bool, consistent pairs; all False if they are not credible.
        is_patterned: Whether slow pairs were left out, as those of a fixed pattern.
    """

    pairs: ArrayI64
    score: ArrayF32
    keep: ArrayBool
    is_patterned: bool


def first_pass(a: ImageFeatures, b: ImageFeatures, config: MatchConfig) -> FirstPass:
    """Match descriptors and find consistent pairs, the first pass of ``match_features``."""
    pairs, score = match_mutual(a.descriptors, b.descriptors, ratio=config.tentative_ratio)
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    area = (float(a.view.mask.sum()), float(b.view.mask.sum()))
    keep = consistent_matches(xy_a, xy_b, score, area_px=area, config=config.local_affine)
    keep[keep] = moves_with_scene(a.view.to_image(xy_a[keep]), b.view.to_image(xy_b[keep]))
    is_patterned = has_fixed_pattern(a, b, xy_a[keep], xy_b[keep], config=config.credibility)
    if is_patterned:
        keep[keep] = ~is_slow(a, b, xy_a[keep], xy_b[keep])
    if not is_credible(a, b, xy_a[keep], xy_b[keep], config=config.credibility):
        return FirstPass(pairs, score, np.zeros(len(pairs), np.bool_), is_patterned)
    model = find_two_view_model(xy_a[keep], xy_b[keep], slack_px=config.slack_px)
    keep[keep] = model.agrees(xy_a[keep], xy_b[keep], leave_out=True)
    if not is_credible(a, b, xy_a[keep], xy_b[keep], config=config.credibility):
        keep = np.zeros(len(pairs), np.bool_)
    return FirstPass(pairs, score, keep, is_patterned)


def _match_views(a: ImageFeatures, b: ImageFeatures, config: MatchConfig) -> Matches:
    """All matches in pixels of the two views."""
    first = first_pass(a, b, config)
    if not first.keep.any():
        return no_matches()
    pairs, score = first.pairs[first.keep], first.score[first.keep]
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    model = find_two_view_model(xy_a, xy_b, slack_px=config.slack_px)
    pairs, score = _add_guided(a, b, pairs, score, model=model, config=config)
    matches = Matches(a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]], score)
    model = find_two_view_model(matches.xy_a, matches.xy_b, slack_px=config.slack_px)
    a_to_b = smooth_pair(a.view, b.view, config=config.completion)
    if config.is_refined:
        matches = refine_matches(a_to_b, matches, model)
    b_to_a = a_to_b.inverse()
    for _ in range(config.completion_rounds):
        matches = _complete(a, b, matches, directions=(a_to_b, b_to_a), config=config)
    return _filter(a, b, matches, config, is_patterned=first.is_patterned)


def _add_guided(
    a: ImageFeatures,
    b: ImageFeatures,
    pairs: ArrayI64,
    score: ArrayF32,
    *,
    model: TwoViewModel,
    config: MatchConfig,
) -> tuple[ArrayI64, ArrayF32]:
    """Add matches of unmatched key points near their predicted positions."""
    unmatched_a = np.setdiff1d(np.arange(len(a.keypoints)), pairs[:, 0])
    unmatched_b = np.setdiff1d(np.arange(len(b.keypoints)), pairs[:, 1])
    if not len(unmatched_a) or not len(unmatched_b):
        return pairs, score
    distance = np.linalg.norm(a.descriptors[pairs[:, 0]] - b.descriptors[pairs[:, 1]], axis=1)
    predicted = model.predict(a.keypoints.xy[unmatched_a])
    radius_px = config.guided_radius_px
    added_matches, _ = guided_matches(
        a.descriptors[unmatched_a],
        b.descriptors[unmatched_b],
        b.keypoints.xy[unmatched_b],
        predicted.xy_b,
        radius_px + 2.0 * np.minimum(predicted.spread_px, radius_px),
        ratio=config.guided_ratio,
        max_distance=float(np.quantile(distance, config.guided_quantile)),
    )
    new_pairs = np.stack(
        [unmatched_a[added_matches[:, 0]], unmatched_b[added_matches[:, 1]]], axis=1
    )
    keep = model.agrees(a.keypoints.xy[new_pairs[:, 0]], b.keypoints.xy[new_pairs[:, 1]])
    new_pairs = new_pairs[keep]
    return np.concatenate([pairs, new_pairs]), np.r_[score, np.zeros(len(new_pairs), np.float32)]


def _complete(
    a: ImageFeatures,
    b: ImageFeatures,
    matches: Matches,
    *,
    directions: tuple[SmoothPair, SmoothPair],
    config: MatchConfig,
) -> Matches:
    """Add key points of either image that are found in the other by alignment."""
    model = find_two_view_model(matches.xy_a, matches.xy_b, slack_px=config.slack_px)
    unmatched = a.keypoints.xy[far_from(a.keypoints.xy, matches.xy_a, distance_px=SAME_PX_A)]
    added_matches = complete_matches(directions[0], unmatched, model)
    matches = _concatenate(matches, added_matches)
    unmatched = b.keypoints.xy[far_from(b.keypoints.xy, matches.xy_b, distance_px=SAME_PX_B)]
    b_to_a = complete_matches(directions[1], unmatched, model.inverse())
    return _concatenate(matches, Matches(b_to_a.xy_b, b_to_a.xy_a, b_to_a.score))


def _filter(
    a: ImageFeatures,
    b: ImageFeatures,
    matches: Matches,
    config: MatchConfig,
    *,
    is_patterned: bool,
) -> Matches:
    """Filter matches by the common geometry, the bounds of b, and credibility."""
    size = np.array([b.view.grey.shape[1] - 1, b.view.grey.shape[0] - 1])
    inside = np.asarray(((matches.xy_b >= 0) & (matches.xy_b <= size)).all(axis=1), np.bool_)
    matches = _select(matches, inside)
    xy_a, xy_b = matches.xy_a, matches.xy_b
    if is_patterned or has_fixed_pattern(a, b, xy_a, xy_b, config=config.credibility):
        matches = _select(matches, ~is_slow(a, b, xy_a, xy_b))
    if not is_credible(a, b, matches.xy_a, matches.xy_b, config=config.credibility):
        return no_matches()
    model = find_two_view_model(matches.xy_a, matches.xy_b, slack_px=config.slack_px)
    matches = _select(matches, model.agrees(matches.xy_a, matches.xy_b, leave_out=True))
    is_enough = is_credible(a, b, matches.xy_a, matches.xy_b, config=config.credibility)
    return matches if is_enough else no_matches()


def no_matches() -> Matches:
    """Empty matches."""
    empty = np.zeros((0, 2), np.float32)
    return Matches(empty, empty.copy(), np.zeros(0, np.float32))


def _concatenate(first: Matches, added_matches: Matches) -> Matches:
    return Matches(
        np.concatenate([first.xy_a, added_matches.xy_a]),
        np.concatenate([first.xy_b, added_matches.xy_b]),
        np.concatenate([first.score, added_matches.score]),
    )


def _select(matches: Matches, rows: npt.NDArray[Any]) -> Matches:
    return replace(
        matches, xy_a=matches.xy_a[rows], xy_b=matches.xy_b[rows], score=matches.score[rows]
    )
