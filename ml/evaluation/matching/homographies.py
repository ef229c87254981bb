"""Homographies between real neighbouring frames, for pairs seen from another position."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.evaluation.common.images import EvaluationImage
from ml.evaluation.matching.pairs import as_u8
from ml.geometry import normalised, transform_points
from ml.keypoints import load_descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.pipeline import match_keypoints
from ml.keypoints.verification.estimation import estimate_transform
from ml.types import ArrayF64, Keypoints

MIN_INLIERS = 30
"""Least number of inliers; fewer may agree by chance."""
MAX_CORNER_SHIFT = 0.3
"""Largest plausible motion of a corner, as a share of width or height."""


def real_homographies(
    frame_pairs: Iterable[tuple[EvaluationImage, EvaluationImage]],
) -> list[ArrayF64]:
    """Homographies between real frames, in units of the frame's width and height.

    Found by SIFT and MAGSAC; pairs with few inliers or an improbable motion are left out.
    Source: graph-ssl-endoscopic-matching, section 4.3.2; adaptive-triplet, section 3.3.2; both
    with SIFT and RANSAC.
    """
    sift = load_descriptor("sift")
    homographies = []
    for a, b in frame_pairs:
        matches = match_keypoints(sift, a.rgb, _sift_points(a), b.rgb, _sift_points(b))
        try:
            transform = estimate_transform(matches.xy_a, matches.xy_b)
        except NotEnoughMatchesError:
            continue
        unit = np.diag([a.rgb.shape[1], a.rgb.shape[0], 1.0])
        matrix = np.linalg.inv(unit) @ transform.matrix @ unit
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])
        shift = np.abs(transform_points(matrix, corners) - corners).max()
        if transform.inliers.sum() >= MIN_INLIERS and shift <= MAX_CORNER_SHIFT:
            homographies.append(normalised(matrix))
    return homographies


def _sift_points(image: EvaluationImage) -> Keypoints:
    config = DetectorConfig(name="sift", max_keypoints=1000)
    return detect_keypoints(image.rgb, config=config, mask=as_u8(image.mask))
