"""Homographies and convex outlines in NumPy alone, for the engine and for the web process.

A homography is a (3, 3) float64 matrix that maps pixels (x right, y down) of one plane to another;
``H_b_from_a`` maps a to b. Where a function takes (..., 3, 3) it maps by each of the matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ml.types import ArrayBool, ArrayF64

MIN_DEPTH = 1e-9
"""A homography's w at or below it: the point lies behind the plane, or on its horizon."""

NO_LENGTH_PX = 1e-12
"""Edges are taken for at least so long, so that two corners on one spot divide by no zero."""


def transform_points(H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """Points of a in b, (..., P, 2) float64; mirrored where ``depth_of`` is not above 0.

    Args:
        H_b_from_a: (..., 3, 3). xy: (P, 2).
    """
    mapped = _homogeneous(H_b_from_a, xy)
    return np.asarray(mapped[..., :2] / mapped[..., 2:], np.float64)


def project_points(
    H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]
) -> tuple[ArrayF64, ArrayBool]:
    """As ``transform_points``, and which of them lie in front of the plane.

    Returns:
        (..., P, 2) float64, finite, of no meaning where the point lies behind the plane;
        (..., P) bool, False there.
    """
    mapped = _homogeneous(H_b_from_a, xy)
    is_front: ArrayBool = mapped[..., 2] > MIN_DEPTH
    return mapped[..., :2] / np.where(is_front, mapped[..., 2], 1.0)[..., None], is_front


def depth_of(H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """(P,) float64: the homogeneous w of points of a, by one (3, 3); less than 0 behind b."""
    points = np.asarray(xy, np.float64)
    return np.asarray(points @ H_b_from_a[2, :2] + H_b_from_a[2, 2], np.float64)


def homography_jacobian(H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """(P, 2, 2) float64: derivative of a homography, (3, 3), at points of a (P, 2)."""
    points = np.asarray(xy, np.float64)
    moved = transform_points(H_b_from_a, points)
    rest = H_b_from_a[None, :2, :2] - moved[:, :, None] * H_b_from_a[None, 2:, :2]
    return np.asarray(rest / depth_of(H_b_from_a, points)[:, None, None], np.float64)


def inverse(H_b_from_a: npt.NDArray[Any]) -> ArrayF64:
    """(..., 3, 3) float64: the way back."""
    return np.asarray(np.linalg.inv(H_b_from_a), np.float64)


def normalised(H_b_from_a: npt.NDArray[Any]) -> ArrayF64:
    """(3, 3) float64: the same map with ``H[2, 2] == 1``."""
    return np.asarray(H_b_from_a / H_b_from_a[2, 2], np.float64)


def translation(x: float, y: float) -> ArrayF64:
    """(3, 3) float64: moves points by (x, y)."""
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def similarity(scale: float, angle: float, x: float, y: float) -> ArrayF64:
    """(3, 3) float64: turns about the origin by ``angle`` (radians, x to y), scales, then moves."""
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    return np.array([[c, -s, x], [s, c, y], [0.0, 0.0, 1.0]])


def box_corners(left: float, top: float, right: float, bottom: float) -> ArrayF64:
    """(4, 2) float64: corners of an upright box, clockwise on the screen from the left top."""
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


def inside_convex(outline: ArrayF64, xy: ArrayF64, *, margin_px: float = 0.5) -> ArrayBool:
    """(P,) bool: which points (P, 2) a convex outline holds, or has within the margin of it.

    Args:
        outline: (K, 2), in either direction.
    """
    ahead = np.roll(outline, -1, axis=0)
    edge = ahead - outline
    area = float(np.sum(outline[:, 0] * ahead[:, 1] - ahead[:, 0] * outline[:, 1]))
    length = np.maximum(np.linalg.norm(edge, axis=1), NO_LENGTH_PX)
    away = xy[:, None, :] - outline[None]
    cross = edge[:, 0] * away[..., 1] - edge[:, 1] * away[..., 0]
    distance = np.sign(area) * cross / length
    return np.asarray((distance >= -margin_px).all(axis=1))


def outline_bounds(H_b_from_a: ArrayF64, outline: ArrayF64) -> ArrayF64:
    """(N, 4) float64: left, top, right, bottom of an outline (K, 2) through N homographies.

    Infinite where a corner lies behind the plane: such a frame is never left out of a search.
    """
    xy, is_front = project_points(H_b_from_a, outline)
    found = np.concatenate([xy.min(axis=1), xy.max(axis=1)], axis=1)
    found[~is_front.all(axis=1)] = [-np.inf, -np.inf, np.inf, np.inf]
    return found


def _homogeneous(matrix: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """(..., P, 3)."""
    points = np.asarray(xy, np.float64)
    turned = points @ np.swapaxes(matrix[..., :2], -1, -2)
    return np.asarray(turned + matrix[..., None, :, 2], np.float64)
