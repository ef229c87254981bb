"""Two images in, corresponding points out: detect, describe, match, reject."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, NotEnoughMatchesError
from ml.keypoints.describe import Descriptor, load_descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.geometry import estimate_fundamental, estimate_transform
from ml.keypoints.match import match_mutual
from ml.types import ArrayBool, Keypoints, Matches

MIN_AGREEING = 12
"""Fewer matches that agree on one geometry are taken for chance: unrelated images give none."""

MIN_AGREEING_SHARE = 0.2
PLANAR_SHARE = 0.8
"""A homography that explains this share of what a fundamental matrix does is preferred."""


def match_images(
    image_a: npt.NDArray[Any],
    image_b: npt.NDArray[Any],
    descriptor: str = "default",
    detector: str | None = None,
    max_keypoints: int = 1000,
    *,
    mask_a: npt.NDArray[Any] | None = None,
    mask_b: npt.NDArray[Any] | None = None,
) -> Matches:
    """Match two images: key points, mutual nearest neighbours, one geometry, outliers rejected.

    Args:
        image_a, image_b: (H, W[, 1|3|4]), any size and bit depth each.
        descriptor: a name of ``load_descriptor``.
        detector: a name of ``detect.DETECTOR_NAMES``; None takes the descriptor's own.
        max_keypoints: at most so many a image.
        mask_a, mask_b: (H, W), where key points may lie; None estimates the scope's field.
    Returns:
        Matches: M >= 0 pairs, strongest first; score = 1 - d1 / d2, in [0, 1]. Empty where the
        images share too little to agree on one geometry.
    Raises:
        UnknownNameError: no such descriptor or detector.
        BadInputError: max_keypoints below 1; ShapeError for what is not an image.
    """
    if max_keypoints < 1:
        raise BadInputError(f"max_keypoints: expected at least 1, got {max_keypoints}")
    loaded = load_descriptor(descriptor)
    config = DetectorConfig(name=detector or loaded.detector, max_keypoints=max_keypoints)
    points_a = detect_keypoints(image_a, config=config, mask=mask_a)
    points_b = detect_keypoints(image_b, config=config, mask=mask_b)
    raw = match_keypoints(loaded, image_a, points_a, image_b, points_b)
    keep = agreeing(raw)
    order = np.argsort(-raw.score[keep], kind="stable")
    return Matches(raw.xy_a[keep][order], raw.xy_b[keep][order], raw.score[keep][order])


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


def agreeing(matches: Matches) -> ArrayBool:
    """(M,) bool: the matches that agree on one geometry, a plane's or a rigid scene's."""
    nothing = np.zeros(len(matches), np.bool_)
    planar = _inliers(matches, is_planar=True)
    rigid = _inliers(matches, is_planar=False)
    best = planar if planar.sum() >= PLANAR_SHARE * rigid.sum() else rigid
    enough = max(MIN_AGREEING, MIN_AGREEING_SHARE * len(matches))
    if best.sum() >= enough:
        return best
    return nothing


def _inliers(matches: Matches, *, is_planar: bool) -> ArrayBool:
    try:
        if is_planar:
            return estimate_transform(matches.xy_a, matches.xy_b, threshold_px=3.0).inliers
        return estimate_fundamental(matches.xy_a, matches.xy_b, threshold_px=1.5).inliers
    except NotEnoughMatchesError:
        return np.zeros(len(matches), np.bool_)
