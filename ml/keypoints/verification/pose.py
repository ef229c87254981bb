"""Relative pose of a calibrated camera between two views of a rigid scene."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.errors import NotEnoughMatchesError, ShapeError
from ml.geometry import transform_points
from ml.keypoints.verification.estimation import CONFIDENCE, METHODS, check_matches
from ml.types import ArrayBool, ArrayF32, ArrayF64

_MIN_FOR_POSE = 5
"""An essential matrix has five degrees of freedom."""

FAR = 1e5
"""Largest distance of points, in baselines, that are used to choose among the four motions of E;
large, as frames of a video are close to each other."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Relative pose, ``x_b = R x_a + s t`` with unknown s.

    Attributes:
        essential: (3, 3) float64, ``y_b^T E y_a = 0`` for points in units of the focal length.
        rotation: (3, 3) float64, R.
        direction: (3,) float64, t, of unit length.
        inliers: (N,) bool, inliers of the matches.
    """

    essential: ArrayF64
    rotation: ArrayF64
    direction: ArrayF64
    inliers: ArrayBool


def estimate_pose(
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    camera_a: ArrayF64,
    camera_b: ArrayF64 | None = None,
    *,
    threshold_px: float = 1.0,
    method: str = "magsac",
) -> Pose:
    """Estimate the relative pose of a camera from matches of a rigid scene.

    ``magsac`` weighs all matches by their residuals; ``ransac`` returns the pose of the best
    sample, including its noise. Without parallax (pure rotation or a distant plane) the direction
    is undefined.

    Args:
        xy_a, xy_b: (N, 2) float32 pixels, without lens distortion.
        camera_a, camera_b: (3, 3) intrinsics; ``camera_b`` defaults to ``camera_a``.
        threshold_px: Largest distance of an inlier from its epipolar line, pixels of a.
        method: One of ``METHOD_NAMES``.
    Raises:
        NotEnoughMatchesError: Fewer than 5 matches or inliers.
        UnknownNameError: Unknown method.
        ShapeError: Matches not (N, 2) with equal N or not finite; cameras not (3, 3).
    Source: Nister 2004 (five points); Barath et al. 2020 (MAGSAC++), as implemented in OpenCV.
    """
    check_matches(xy_a, xy_b, method)
    for name, camera in (("camera_a", camera_a), ("camera_b", camera_b)):
        if camera is not None and np.shape(camera) != (3, 3):
            raise ShapeError(name, expected="(3, 3)", actual=str(np.shape(camera)))
    if len(xy_a) < _MIN_FOR_POSE:
        raise NotEnoughMatchesError(needed=_MIN_FOR_POSE, actual=len(xy_a))
    camera = np.asarray(camera_a, np.float64)
    a, b = xy_a.astype(np.float64), xy_b.astype(np.float64)
    if camera_b is not None:  # convert to pixels of camera a
        b = transform_points(camera @ np.linalg.inv(camera_b), b)
    try:
        essential, mask = cv2.findEssentialMat(
            a, b, camera, METHODS[method], CONFIDENCE, threshold_px
        )
        if essential is None or essential.shape != (3, 3):
            raise NotEnoughMatchesError(needed=_MIN_FOR_POSE, actual=0)
        inliers = np.asarray(mask.ravel() > 0)
        _, rotation, shift, *_ = cv2.recoverPose(
            essential, a, b, camera, distanceThresh=FAR, mask=mask
        )
    except cv2.error:  # degenerate samples
        raise NotEnoughMatchesError(needed=_MIN_FOR_POSE, actual=0) from None
    if inliers.sum() < _MIN_FOR_POSE:
        raise NotEnoughMatchesError(needed=_MIN_FOR_POSE, actual=int(inliers.sum()))
    return Pose(
        np.asarray(essential, np.float64),
        np.asarray(rotation, np.float64),
        np.asarray(shift.ravel() / np.linalg.norm(shift), np.float64),
        inliers,
    )
