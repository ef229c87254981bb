"""Projection of key points to another view by a homography."""

from __future__ import annotations

import numpy as np

from ml.types import ArrayF32, ArrayF64, Keypoints


def project_keypoints(points: Keypoints, H_b_from_a: ArrayF64, xy_b: ArrayF32) -> Keypoints:
    """Project key points of a to b, with their size and angle.

    The size changes by the square root of the determinant of the local derivative, and the angle by
    the derivative. Unknown angles (below 0) stay unknown.

    Args:
        points: N key points of a.
        H_b_from_a: (3, 3) float64 homography.
        xy_b: (N, 2) float32, their positions in b.
    """
    x, y = points.xy.astype(np.float64).T
    H = H_b_from_a
    w = H[2, 0] * x + H[2, 1] * y + H[2, 2]
    bx, by = xy_b.astype(np.float64).T
    # the derivative of (h0 / w, h1 / w), row by row
    dx = (H[0, 0] - bx * H[2, 0]) / w, (H[0, 1] - bx * H[2, 1]) / w
    dy = (H[1, 0] - by * H[2, 0]) / w, (H[1, 1] - by * H[2, 1]) / w
    scale = np.sqrt(np.abs(dx[0] * dy[1] - dx[1] * dy[0]))
    c, s = np.cos(np.radians(points.angle_deg)), np.sin(np.radians(points.angle_deg))
    angle_deg = np.degrees(np.arctan2(dy[0] * c + dy[1] * s, dx[0] * c + dx[1] * s)) % 360
    return Keypoints(
        xy_b,
        points.response,
        (points.size_px * scale).astype(np.float32),
        np.where(points.angle_deg < 0, points.angle_deg, angle_deg).astype(np.float32),
    )
