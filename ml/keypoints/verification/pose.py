"""How a calibrated camera moved between two views of a rigid scene."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.errors import NotEnoughMatchesError, ShapeError
from ml.geometry import transform_points
from ml.keypoints.verification.estimation import CONFIDENCE, METHODS, check_matches
from ml.types import ArrayBool, ArrayF32, ArrayF64

_LEAST_FOR_POSE = 5
"""An essential matrix has five degrees of freedom."""

FAR = 1e5
"""A point this many baselines away still tells which of the four motions of E it is: frames of a
video lie close together."""


@dataclass(frozen=True, slots=True)
class Pose:
    """The motion of a camera, ``x_b = R x_a + s t`` for points of the scene, s unknown.

    Attributes:
        essential: (3, 3) float64, ``y_b^T E y_a = 0`` for points in units of the focal length.
        rotation: (3, 3) float64, R. direction: (3,) float64, t, of length 1.
        inliers: (N,) bool over the matches.
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
    """Estimate how the camera moved from a to b, from matches of a rigid scene.

    ``magsac`` weighs every match by its residual; ``ransac`` answers with the pose of the best
    five, whose noise it keeps. The motion must show parallax: of pure rotation, or of a plane far
    away, the direction means nothing.

    Args:
        xy_a, xy_b: (N, 2) float32 pixels, lens distortion taken off.
        camera_a, camera_b: (3, 3) intrinsics; b's are a's unless given.
        threshold_px: largest distance of an inlier from its epipolar line, pixels of a.
    Raises:
        NotEnoughMatchesError: fewer than 5 matches, or than 5 that agree on a pose.
        UnknownNameError: no such method.
        ShapeError: matches not (N, 2) of one N or not finite; cameras not (3, 3).
    Source: Nister 2004 (five points); Barath et al. 2020 (MAGSAC++), as OpenCV implements them.
    """
    check_matches(xy_a, xy_b, method)
    for name, camera in (("camera_a", camera_a), ("camera_b", camera_b)):
        if camera is not None and np.shape(camera) != (3, 3):
            raise ShapeError(name, expected="(3, 3)", actual=str(np.shape(camera)))
    if len(xy_a) < _LEAST_FOR_POSE:
        raise NotEnoughMatchesError(needed=_LEAST_FOR_POSE, actual=len(xy_a))
    camera = np.asarray(camera_a, np.float64)
    a, b = xy_a.astype(np.float64), xy_b.astype(np.float64)
    if camera_b is not None:  # as a's camera would see them
        b = transform_points(camera @ np.linalg.inv(camera_b), b)
    try:
        essential, agree = cv2.findEssentialMat(
            a, b, camera, METHODS[method], CONFIDENCE, threshold_px
        )
        if essential is None or essential.shape != (3, 3):
            raise NotEnoughMatchesError(needed=_LEAST_FOR_POSE, actual=0)
        inliers = np.asarray(agree.ravel() > 0)
        _, rotation, shift, *_ = cv2.recoverPose(
            essential, a, b, camera, distanceThresh=FAR, mask=agree
        )
    except cv2.error:  # degenerate samples
        raise NotEnoughMatchesError(needed=_LEAST_FOR_POSE, actual=0) from None
    if inliers.sum() < _LEAST_FOR_POSE:
        raise NotEnoughMatchesError(needed=_LEAST_FOR_POSE, actual=int(inliers.sum()))
    return Pose(
        np.asarray(essential, np.float64),
        np.asarray(rotation, np.float64),
        np.asarray(shift.ravel() / np.linalg.norm(shift), np.float64),
        inliers,
    )
