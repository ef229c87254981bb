"""What two views have in common: a plane, a rigid scene, or tissue that only agrees locally."""

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
"""Localisation noise of a key point, GRIC's sigma."""

PLANE_PX, BAND_PX = 3.0 * NOISE_PX, 1.5 * NOISE_PX
"""Largest transfer error of a match on a plane, and largest distance from the epipolar line in one
image. The band is narrower: along the line anything agrees."""

PLANE_SHARE, NOISY_SHARE, RIGID_SHARE = 0.8, 0.5, 0.5
"""A model is enforced only where it explains this share of the locally consistent matches; for a
plane the second will do where the rest is noise and no relief. Chosen on the development sequences
(docs/models/keypoints.md)."""

RELIEF_RATIO = 0.9
"""Neighbours that predict a match better than this times the plane's error show relief."""

SLACK_PX = 4.0
"""How far a match may lie from the motion field: more than a plane's match from its plane, for the
field follows the matches of soft tissue a little behind."""

HORIZON_DEPTH = 0.05
"""At and beyond the horizon of a plane (depth 0; 1 at the origin) only the field is used."""


@dataclass(frozen=True, slots=True)
class TwoViewModel:
    """How one view maps to the other, as far as their matches show.

    Attributes:
        kind: ``plane`` (matrix is the homography), ``rigid`` (the fundamental matrix), ``local``
            (soft tissue or several planes: no matrix).
        matrix: (3, 3) float64 or None.
        field: the motion field of the supporting matches.
        slack_px: how far a match may lie from the field before it is refused.
    """

    kind: Kind
    matrix: ArrayF64 | None
    field: MotionField
    slack_px: float

    def agrees(self, xy_a: ArrayF32, xy_b: ArrayF32, *, leave_out: bool = False) -> ArrayBool:
        """(N,) bool: near the field's prediction, and on the plane or in the epipolar band.

        Where the field turns the tissue over, nothing agrees: a straight vessel looks like its
        mirror image, but tissue is never seen from behind.

        ``leave_out``: the points are the field's own, in its order; the others predict each.
        """
        if not len(xy_a):
            return np.zeros(0, np.bool_)
        sample = self.field.at(xy_a, leave_out=leave_out)
        error = np.hypot(*(sample.xy_b - xy_b).T)
        near: ArrayBool = error < self.slack_px + 2.0 * np.minimum(sample.spread_px, self.slack_px)
        near &= np.linalg.det(sample.jacobian) > 0
        if self.matrix is None:
            return near
        if self.kind == "plane":
            moved = transform_points(self.matrix, xy_a)
            return np.asarray(near & (np.hypot(*(moved - xy_b).T) < PLANE_PX))
        distance = symmetric_epipolar_px(self.matrix, xy_a, xy_b) / 2
        return np.asarray(near & (distance < BAND_PX))

    def predict(self, xy_a: ArrayF32) -> PredictedPoints:
        """Where (N, 2) points of a lie in b: by the plane where there is one, else by the field."""
        points = self.field.at(xy_a)
        if self.kind != "plane" or self.matrix is None:
            return points
        seen = depth_of(self.matrix, xy_a) > HORIZON_DEPTH
        points.xy_b[seen] = transform_points(self.matrix, xy_a[seen])
        points.jacobian[seen] = homography_jacobian(self.matrix, xy_a[seen])
        return replace(points, spread_px=np.where(seen, 0.0, points.spread_px))

    def inverse(self) -> TwoViewModel:
        """The same geometry from b to a."""
        matrix = self.matrix
        if matrix is not None:
            turned = np.linalg.inv(matrix) if self.kind == "plane" else matrix.T
            matrix = np.asarray(turned, np.float64)
        field = MotionField(self.field.xy_b, self.field.xy_a)
        return TwoViewModel(self.kind, matrix, field, self.slack_px)


def find_two_view_model(
    xy_a: ArrayF32, xy_b: ArrayF32, *, slack_px: float = SLACK_PX
) -> TwoViewModel:
    """Choose the geometry of matches that are locally consistent already.

    A homography and a fundamental matrix are estimated by USAC-MAGSAC and compared by GRIC; the
    better one is enforced only where it explains most matches, else the tissue is taken for soft.
    A plane is kept as well where the neighbours of a match do not predict it better.

    Args:
        xy_a, xy_b: (N, 2) float32 pixels. slack_px: how far a match may lie from the motion field.

    Raises:
        NotEnoughMatchesError: fewer than 6 matches.
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
    """Whether the neighbours predict a match no better than the plane does.

    Relief moves neighbours alike; noise, as motion blur makes along one direction, does not, and
    an epipolar line along that direction would explain it wrongly.
    """
    sample = field.at(field.xy_a, leave_out=True)
    held_out_px = np.hypot(*(sample.xy_b - field.xy_b).T)
    return bool(np.median(held_out_px) >= RELIEF_RATIO * np.median(plane_px))


def gric(error_px: ArrayF64, *, structure: int, parameters: int) -> float:
    """Geometric robust information criterion of residuals: smaller is better.

    GRIC = sum min(e^2 / sigma^2, 2 (r - d)) + d n log r + k log(r n), r = 4 coordinates a match,
    d the dimension of the model's manifold (2 for a plane, 3 for epipolar geometry), k parameters.

    Args:
        error_px: (n,) float64. structure: d. parameters: k.
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
