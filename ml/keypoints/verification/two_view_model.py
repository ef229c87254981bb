"""Two-view models: a plane, a rigid scene, or locally consistent tissue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.geometry import depth_of, homography_jacobian, transform_points
from ml.keypoints.verification.estimation import (
    estimate_fundamental,
    estimate_transform,
    symmetric_epipolar_px,
)
from ml.keypoints.verification.motion_field import MIN_SUPPORT, MotionField, PredictedPoints
from ml.types import ArrayBool, ArrayF32, ArrayF64

Kind = Literal["plane", "rigid", "local"]

NOISE_PX = 1.0
"""Localisation noise of a key point, sigma of GRIC."""

PLANE_PX, BAND_PX = 3.0 * NOISE_PX, 1.5 * NOISE_PX
"""Largest transfer error of a match on a plane, and largest distance from the epipolar line in an
image; smaller, as it constrains a single direction."""

PLANE_SHARE, NOISY_SHARE, RIGID_SHARE = 0.8, 0.5, 0.5
"""Share of the matches that a model must explain; the second for a plane if the residuals are noise
and not relief. Chosen on the development sequences (docs/models/keypoints.md)."""

RELIEF_RATIO = 0.9
"""Ratio of the error by neighbours to that of the plane, below which there is relief."""

SLACK_PX = 4.0
"""Largest distance of a match from the motion field, px; larger than for a plane, as the field is
smoother than the motion of soft tissue."""

HORIZON_DEPTH = 0.05
"""Smallest depth (1 at the origin) at which a plane is used; the horizon has depth 0."""


@dataclass(frozen=True, slots=True)
class TwoViewModel:
    """Geometry from one view to the other.

    Attributes:
        kind: ``plane`` (matrix is the homography), ``rigid`` (the fundamental matrix), ``local``
            (soft tissue or several planes, no matrix).
        matrix: (3, 3) float64 or None.
        field: Motion field of the matches.
        slack_px: Largest distance of a match from the field.
    """

    kind: Kind
    matrix: ArrayF64 | None
    field: MotionField
    slack_px: float

    def agrees(self, xy_a: ArrayF32, xy_b: ArrayF32, *, leave_out: bool = False) -> ArrayBool:
        """Mask (N,) bool of matches that agree with the field, and the plane or epipolar geometry.

        Matches where the field changes orientation do not agree: a straight vessel is similar to
        its mirror image, but tissue cannot be mirrored.

        Args:
            xy_a, xy_b: (N, 2) matches.
            leave_out: The matches are those of the field, in order, and each is predicted from the
                others.
        """
        if not len(xy_a):
            return np.zeros(0, np.bool_)
        sample = self.field.at(xy_a, leave_out=leave_out)
        error = np.hypot(*(sample.xy_b - xy_b).T)
        is_near: ArrayBool = error < self.slack_px + 2.0 * np.minimum(
            sample.spread_px, self.slack_px
        )
        is_near &= np.linalg.det(sample.jacobian) > 0
        if self.matrix is None:
            return is_near
        if self.kind == "plane":
            transferred = transform_points(self.matrix, xy_a)
            return np.asarray(is_near & (np.hypot(*(transferred - xy_b).T) < PLANE_PX))
        distance = symmetric_epipolar_px(self.matrix, xy_a, xy_b) / 2
        return np.asarray(is_near & (distance < BAND_PX))

    def predict(self, xy_a: ArrayF32) -> PredictedPoints:
        """Predict positions in b of points (N, 2) of a, by the plane or the field."""
        points = self.field.at(xy_a)
        if self.kind != "plane" or self.matrix is None:
            return points
        before_horizon = depth_of(self.matrix, xy_a) > HORIZON_DEPTH
        points.xy_b[before_horizon] = transform_points(self.matrix, xy_a[before_horizon])
        points.jacobian[before_horizon] = homography_jacobian(self.matrix, xy_a[before_horizon])
        return replace(points, spread_px=np.where(before_horizon, 0.0, points.spread_px))

    def inverse(self) -> TwoViewModel:
        """Model from b to a."""
        matrix = self.matrix
        if matrix is not None:
            inverted = np.linalg.inv(matrix) if self.kind == "plane" else matrix.T
            matrix = np.asarray(inverted, np.float64)
        field = MotionField(self.field.xy_b, self.field.xy_a)
        return TwoViewModel(self.kind, matrix, field, self.slack_px)


def find_two_view_model(
    xy_a: ArrayF32, xy_b: ArrayF32, *, slack_px: float = SLACK_PX
) -> TwoViewModel:
    """Select the geometry of locally consistent matches.

    A homography and a fundamental matrix are estimated by USAC-MAGSAC and compared by GRIC. The
    better one is used if it explains most matches, else ``local``. A plane is also used if the
    neighbours of a match do not predict it better.

    Args:
        xy_a, xy_b: (N, 2) float32 pixels.
        slack_px: Largest distance of a match from the motion field.
    Raises:
        NotEnoughMatchesError: Fewer than 6 matches.
    Source: Torr 1998 (GRIC, eq. 5-6); Barath et al. 2020 (MAGSAC++).
    """
    if len(xy_a) < MIN_SUPPORT:
        raise NotEnoughMatchesError(needed=MIN_SUPPORT, actual=len(xy_a))
    field = MotionField(xy_a, xy_b)
    plane, rigid = _plane(xy_a, xy_b), _rigid(xy_a, xy_b)
    plane_px = _plane_px(plane, xy_a, xy_b)
    rigid_px = _rigid_px(rigid, xy_a, xy_b)
    plane_share = float((plane_px < PLANE_PX).mean())
    is_rigid = float((rigid_px < BAND_PX).mean()) >= RIGID_SHARE
    cost = gric(plane_px, structure=2, parameters=8), gric(rigid_px, structure=3, parameters=7)
    is_plane = plane_share >= PLANE_SHARE and (cost[0] <= cost[1] or not is_rigid)
    if is_plane or (plane_share >= NOISY_SHARE and _is_noise(field, plane_px)):
        return TwoViewModel("plane", plane, field, slack_px)
    if is_rigid:
        return TwoViewModel("rigid", rigid, field, slack_px)
    return TwoViewModel("local", None, field, slack_px)


def _is_noise(field: MotionField, plane_px: ArrayF64) -> bool:
    """Return whether neighbours predict a match no better than the plane.

    Relief moves neighbours similarly. Noise, such as that of motion blur along a direction, does
    not, but epipolar lines along that direction would explain it.
    """
    sample = field.at(field.xy_a, leave_out=True)
    held_out_px = np.hypot(*(sample.xy_b - field.xy_b).T)
    return bool(np.median(held_out_px) >= RELIEF_RATIO * np.median(plane_px))


def gric(error_px: ArrayF64, *, structure: int, parameters: int) -> float:
    """Geometric robust information criterion of residuals: smaller is better.

    GRIC = sum min(e^2 / sigma^2, 2 (r - d)) + d n log r + k log(r n) with r = 4 coordinates of a
    match, dimension d of the model (2 for a plane, 3 for epipolar geometry) and k parameters.

    Args:
        error_px: (n,) float64.
        structure: Dimension d.
        parameters: Number k of parameters.
    Source: Torr 1998, eq. 5-6.
    """
    n = max(len(error_px), 1)
    squared = (np.asarray(error_px, np.float64) / NOISE_PX) ** 2
    misfit = np.minimum(squared, 2.0 * (4 - structure)).sum()
    return float(misfit + structure * n * np.log(4.0) + parameters * np.log(4.0 * n))


def _plane(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayF64 | None:
    try:
        return estimate_transform(xy_a, xy_b, threshold_px=PLANE_PX).matrix
    except NotEnoughMatchesError:
        return None


def _rigid(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayF64 | None:
    try:
        return estimate_fundamental(xy_a, xy_b, threshold_px=BAND_PX).matrix
    except NotEnoughMatchesError:
        return None


def _plane_px(matrix: ArrayF64 | None, xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayF64:
    if matrix is None:
        return np.full(len(xy_a), np.inf)
    return np.asarray(np.hypot(*(transform_points(matrix, xy_a) - xy_b).T))


def _rigid_px(matrix: ArrayF64 | None, xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayF64:
    if matrix is None:
        return np.full(len(xy_a), np.inf)
    return symmetric_epipolar_px(matrix, xy_a, xy_b) / 2
