"""Two images in, corresponding points out: detect, describe, match, agree, guide, refine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints.credibility import CredibilityConfig, is_credible, is_of_the_scene
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.features import ImageFeatures, extract_view, load_chosen
from ml.keypoints.match import match_mutual
from ml.keypoints.parallel import both
from ml.keypoints.verification.completion import (
    CompletionConfig,
    SmoothPair,
    apart_from,
    complete_matches,
    refine_matches,
    smooth_pair,
)
from ml.keypoints.verification.guided import guided_matches
from ml.keypoints.verification.local_affine import LocalAffineConfig, consistent_matches
from ml.keypoints.verification.two_view_model import SLACK_PX, TwoViewModel, find_two_view_model
from ml.keypoints.views import working_view
from ml.types import ArrayBool, ArrayF32, ArrayI64, Keypoints, Matches

SAME_PX_A, SAME_PX_B = 0.5, 2.0
"""A key point this close to a match has its partner. Those of a stand where they were detected;
those of b were moved by the refinement."""


@dataclass(frozen=True, slots=True)
class MatchConfig:
    """How two images are matched; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        tentative_ratio: ratio test of the first, unguided pass; 1 keeps every mutual pair.
        local_affine: the vote of neighbours that separates right from wrong.
        credibility: how many matches are enough.
        slack_px: how far a match may lie from the motion field of the others.
        guided_radius_px: how far from the predicted position the second pass looks, at least.
        guided_ratio: ratio test among the candidates there.
        guided_quantile: a guided match may be as far in descriptor space as this share of the
            first pass' matches were.
        is_refined: sub-pixel alignment of the positions in b.
        completion_rounds: this many times, key points of either image without a partner among
            those of the other are found there by alignment alone; each round starts from the
            motion of the last. 0 gives matches of key points only.
        completion: when an alignment is trusted.
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
    """Match two images: key points, mutual nearest neighbours, one geometry, outliers rejected.

    Args:
        image_a, image_b: (H, W[, 1|3|4]), any size and bit depth each.
        descriptor: a name of ``load_descriptor``.
        detector: a name of ``detect.DETECTOR_NAMES``; None takes the descriptor's own.
        max_keypoints: at most this many key points an image, and at most this many matches.
        mask_a, mask_b: (H, W) bool, or above 127, where key points may lie; None is anywhere. In
            any case only within the scope's field of view as it is estimated.
        config: the stages after the descriptor.
    Returns:
        Matches: 0 <= M <= max_keypoints pairs, strongest first; score in [0, 1]. Empty if the
        images share too little to agree on a geometry. A pair is a key point of a and one of b
        moved to where its patch looks most like that of a; or, by ``config.completion_rounds``, a
        key point of either image and the position in the other where alignment alone finds it.
    Raises:
        UnknownNameError: no such descriptor or detector.
        BadInputError: max_keypoints below 1; ShapeError for what is not an image.
    """
    loaded, detection = load_chosen(descriptor, detector, max_keypoints)
    view_a = working_view(image_a, mask=mask_a, name="image_a")
    view_b = working_view(image_b, mask=mask_b, name="image_b")
    a, b = both(lambda view: extract_view(view, loaded, detection), view_a, view_b)
    return match_features(a, b, config=config)


def match_features(
    features_a: ImageFeatures, features_b: ImageFeatures, *, config: MatchConfig = MatchConfig()
) -> Matches:
    """Match what ``extract`` found in two images: all of ``match_images`` after the descriptor.

    Returns:
        Matches: as ``match_images`` returns them, to the last bit, at most as many as the larger
        ``max_keypoints`` of the two.
    Raises:
        BadInputError: the two were described by different descriptors.
    """
    a, b = features_a, features_b
    if a.descriptor != b.descriptor:
        raise BadInputError(
            f"features_b: expected descriptors of {a.descriptor!r} like features_a,"
            f" got {b.descriptor!r}"
        )
    found = _match_views(a, b, config)
    order = np.argsort(-found.score, kind="stable")[: max(a.max_keypoints, b.max_keypoints)]
    return Matches(
        a.view.to_image(found.xy_a[order]), b.view.to_image(found.xy_b[order]), found.score[order]
    )


def match_keypoints(
    descriptor: Descriptor,
    image_a: npt.NDArray[Any],
    points_a: Keypoints,
    image_b: npt.NDArray[Any],
    points_b: Keypoints,
) -> Matches:
    """Describe and match given key points: mutual, with the descriptor's ratio; no geometry."""
    rows_a = descriptor.describe_keypoints(image_a, points_a)
    rows_b = descriptor.describe_keypoints(image_b, points_b)
    pairs, score = match_mutual(rows_a, rows_b, ratio=descriptor.ratio)
    return Matches(points_a.xy[pairs[:, 0]], points_b.xy[pairs[:, 1]], score)


@dataclass(frozen=True, slots=True)
class FirstPass:
    """Mutual neighbours under the ratio test, and which of them agree with their neighbours.

    Attributes:
        pairs: (K, 2) int64, key points of a and b. score: (K,) float32. keep: (K,) bool; none if
            those that agree are too few to be credible.
    """

    pairs: ArrayI64
    score: ArrayF32
    keep: ArrayBool


def agreeing(a: ImageFeatures, b: ImageFeatures, config: MatchConfig) -> FirstPass:
    """The first, unguided pass of ``match_features``."""
    pairs, score = match_mutual(a.descriptors, b.descriptors, ratio=config.tentative_ratio)
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    area = (float(a.view.mask.sum()), float(b.view.mask.sum()))
    keep = consistent_matches(xy_a, xy_b, score, area_px=area, config=config.local_affine)
    keep[keep] = is_of_the_scene(a.view.to_image(xy_a[keep]), b.view.to_image(xy_b[keep]))
    if not is_credible(a, b, xy_a[keep], xy_b[keep], config=config.credibility):
        return FirstPass(pairs, score, np.zeros(len(pairs), np.bool_))
    model = find_two_view_model(xy_a[keep], xy_b[keep], slack_px=config.slack_px)
    keep[keep] = model.agrees(xy_a[keep], xy_b[keep], leave_out=True)
    if not is_credible(a, b, xy_a[keep], xy_b[keep], config=config.credibility):
        keep = np.zeros(len(pairs), np.bool_)
    return FirstPass(pairs, score, keep)


def _match_views(a: ImageFeatures, b: ImageFeatures, config: MatchConfig) -> Matches:
    """Matches in pixels of the two views, before the strongest are chosen."""
    first = agreeing(a, b, config)
    if not first.keep.any():
        return no_matches()
    pairs, score = first.pairs[first.keep], first.score[first.keep]
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    model = find_two_view_model(xy_a, xy_b, slack_px=config.slack_px)
    pairs, score = _guided(a, b, pairs, score, model=model, config=config)
    found = Matches(a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]], score)
    model = find_two_view_model(found.xy_a, found.xy_b, slack_px=config.slack_px)
    there = smooth_pair(a.view, b.view, config=config.completion)
    if config.is_refined:
        found = refine_matches(there, found, model)
    back = there.inverse()
    for _ in range(config.completion_rounds):
        found = _completed(a, b, found, ways=(there, back), config=config)
    return _final(a, b, found, config)


def _guided(
    a: ImageFeatures,
    b: ImageFeatures,
    pairs: ArrayI64,
    score: ArrayF32,
    *,
    model: TwoViewModel,
    config: MatchConfig,
) -> tuple[ArrayI64, ArrayF32]:
    """The pairs, and those that a second look near the predicted positions adds."""
    free_a = np.setdiff1d(np.arange(len(a.keypoints)), pairs[:, 0])
    free_b = np.setdiff1d(np.arange(len(b.keypoints)), pairs[:, 1])
    if not len(free_a) or not len(free_b):
        return pairs, score
    distance = np.linalg.norm(a.descriptors[pairs[:, 0]] - b.descriptors[pairs[:, 1]], axis=1)
    predicted = model.predict(a.keypoints.xy[free_a])
    radius_px = config.guided_radius_px
    more, _ = guided_matches(
        a.descriptors[free_a],
        b.descriptors[free_b],
        b.keypoints.xy[free_b],
        predicted.xy_b,
        radius_px + 2.0 * np.minimum(predicted.spread_px, radius_px),
        ratio=config.guided_ratio,
        max_distance=float(np.quantile(distance, config.guided_quantile)),
    )
    added = np.stack([free_a[more[:, 0]], free_b[more[:, 1]]], axis=1)
    keep = model.agrees(a.keypoints.xy[added[:, 0]], b.keypoints.xy[added[:, 1]])
    added = added[keep]
    return np.concatenate([pairs, added]), np.r_[score, np.zeros(len(added), np.float32)]


def _completed(
    a: ImageFeatures,
    b: ImageFeatures,
    found: Matches,
    *,
    ways: tuple[SmoothPair, SmoothPair],
    config: MatchConfig,
) -> Matches:
    """Adds key points of either image that alignment alone finds in the other."""
    model = find_two_view_model(found.xy_a, found.xy_b, slack_px=config.slack_px)
    free = a.keypoints.xy[apart_from(a.keypoints.xy, found.xy_a, distance_px=SAME_PX_A)]
    more = complete_matches(ways[0], free, model)
    found = _joined(found, more)
    free = b.keypoints.xy[apart_from(b.keypoints.xy, found.xy_b, distance_px=SAME_PX_B)]
    back = complete_matches(ways[1], free, model.inverse())
    return _joined(found, Matches(back.xy_b, back.xy_a, back.score))


def _final(a: ImageFeatures, b: ImageFeatures, found: Matches, config: MatchConfig) -> Matches:
    """What agrees on the geometry of all, inside b, and is more than chance."""
    size = np.array([b.view.grey.shape[1] - 1, b.view.grey.shape[0] - 1])
    inside = np.asarray(((found.xy_b >= 0) & (found.xy_b <= size)).all(axis=1), np.bool_)
    found = _taken(found, inside)
    if not is_credible(a, b, found.xy_a, found.xy_b, config=config.credibility):
        return no_matches()
    model = find_two_view_model(found.xy_a, found.xy_b, slack_px=config.slack_px)
    found = _taken(found, model.agrees(found.xy_a, found.xy_b, leave_out=True))
    is_enough = is_credible(a, b, found.xy_a, found.xy_b, config=config.credibility)
    return found if is_enough else no_matches()


def no_matches() -> Matches:
    """No match at all, in the documented shapes."""
    nothing = np.zeros((0, 2), np.float32)
    return Matches(nothing, nothing.copy(), np.zeros(0, np.float32))


def _joined(one: Matches, more: Matches) -> Matches:
    return Matches(
        np.concatenate([one.xy_a, more.xy_a]),
        np.concatenate([one.xy_b, more.xy_b]),
        np.concatenate([one.score, more.score]),
    )


def _taken(matches: Matches, rows: npt.NDArray[Any]) -> Matches:
    return replace(
        matches, xy_a=matches.xy_a[rows], xy_b=matches.xy_b[rows], score=matches.score[rows]
    )
