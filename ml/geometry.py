"""Homographies and convex outlines in NumPy only, for the engine and for the web process.

A homography is a (3, 3) float64 matrix that maps pixels (x right, y down) of one plane to another;
``H_b_from_a`` maps a to b. Where a function takes (..., 3, 3) it maps by each of the matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.types import ArrayBool, ArrayF64

MIN_DEPTH = 1e-9
"""Smallest w of a homography: below it a point is behind the plane, or on its horizon."""

NO_LENGTH_PX = 1e-12
"""Edges count as at least this long, so that two corners on one spot divide by no zero."""

INVERSE_STEPS = 20
"""Iterations of the inverse of a mesh: enough for a slope of 0.3."""


def transform_points(H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """Points of a in b, (..., P, 2) float64; mirrored where ``depth_of`` is not above 0.

    Args:
        H_b_from_a: (..., 3, 3).
        xy: (P, 2), or (..., P, 2): each matrix has its own points.
    """
    mapped = _homogeneous(H_b_from_a, xy)
    return np.asarray(mapped[..., :2] / mapped[..., 2:], np.float64)


def project_points(
    H_b_from_a: npt.NDArray[Any], xy: npt.NDArray[Any]
) -> tuple[ArrayF64, ArrayBool]:
    """Map points like ``transform_points``, and tell which are in front of the plane.

    Returns:
        (..., P, 2) float64, finite, undefined if the point is behind the plane;
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
    """(..., P, 2, 2) float64: derivative of homographies, (..., 3, 3), at points of a.

    Args:
        xy: (P, 2), or (..., P, 2): each matrix has its own points.
    """
    mapped = _homogeneous(H_b_from_a, xy)
    moved = mapped[..., :2] / mapped[..., 2:]
    linear, last = H_b_from_a[..., None, :2, :2], H_b_from_a[..., None, 2:, :2]
    return np.asarray((linear - moved[..., None] * last) / mapped[..., 2:, None], np.float64)


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
    next_vertices = np.roll(outline, -1, axis=0)
    edge = next_vertices - outline
    area = float(np.sum(outline[:, 0] * next_vertices[:, 1] - next_vertices[:, 0] * outline[:, 1]))
    length = np.maximum(np.linalg.norm(edge, axis=1), NO_LENGTH_PX)
    offsets = xy[:, None, :] - outline[None]
    cross = edge[:, 0] * offsets[..., 1] - edge[:, 1] * offsets[..., 0]
    distance = np.sign(area) * cross / length
    return np.asarray((distance >= -margin_px).all(axis=1))


@dataclass(frozen=True, slots=True)
class FrameMaps:
    """Mappings of N frames to a plane: a homography each, and a mesh where they bend.

    A point of the plane goes into a frame by ``y = H^-1 p``, then ``x = y + m(y)``, with ``m``
    bilinear between the nodes of a mesh that spans the frame. The way back is found step by step.

    Attributes:
        H_plane_from_frame: (N, 3, 3).
        meshes: (N, R, C, 2) displacements of the nodes, frame px; None: homographies only.
        size_px: (width, height) of the frames.
    """

    H_plane_from_frame: ArrayF64
    meshes: ArrayF64 | None
    size_px: tuple[int, int]

    def chosen(self, rows: Sequence[int]) -> FrameMaps:
        """The maps of some of the frames, in this order."""
        chosen = np.asarray(rows, np.int64)
        meshes = None if self.meshes is None else self.meshes[chosen]
        return FrameMaps(self.H_plane_from_frame[chosen], meshes, self.size_px)

    def to_frame(self, xy: npt.NDArray[Any]) -> tuple[ArrayF64, ArrayBool]:
        """Points of the plane, (P, 2), in each frame: see ``project_points``."""
        flat, is_front = project_points(inverse(self.H_plane_from_frame), xy)
        if self.meshes is not None:
            flat = flat + mesh_shift(self.meshes, self.size_px, flat)
        return flat, is_front

    def to_plane(self, xy: npt.NDArray[Any]) -> tuple[ArrayF64, ArrayBool]:
        """Points of the frames, (P, 2), on the plane by each frame: see ``project_points``."""
        if self.meshes is None:
            return project_points(self.H_plane_from_frame, xy)
        points = np.broadcast_to(np.asarray(xy, np.float64), (len(self.meshes), len(xy), 2))
        flat = points
        for _ in range(INVERSE_STEPS):
            flat = points - mesh_shift(self.meshes, self.size_px, flat)
        return project_points(self.H_plane_from_frame, flat)


def outline_bounds(maps: FrameMaps, outline: ArrayF64) -> ArrayF64:
    """(N, 4) float64: left, top, right, bottom on the plane of an outline (K, 2) of the frames.

    Infinite if a corner is behind the plane: such a frame is never left out of a search.
    """
    xy, is_front = maps.to_plane(outline)
    bounds = np.concatenate([xy.min(axis=1), xy.max(axis=1)], axis=1)
    bounds[~is_front.all(axis=1)] = [-np.inf, -np.inf, np.inf, np.inf]
    return bounds


def mesh_shift(meshes: ArrayF64, size_px: tuple[int, int], xy: npt.NDArray[Any]) -> ArrayF64:
    """(N, P, 2) float64: what each mesh adds to its own points; beyond its rim, as at the rim.

    Args:
        meshes: (N, R, C, 2), nodes evenly from the first to the last px of ``size_px``.
        xy: (N, P, 2).
    """
    count, rows, columns, _ = meshes.shape
    max_index = np.array([columns - 1, rows - 1])
    at = np.clip(xy / (np.array(size_px) - 1) * max_index, 0, max_index)
    low = np.minimum(at.astype(np.int64), max_index - 1)
    x, y = (at - low)[..., 0, None], (at - low)[..., 1, None]
    frame = np.arange(count)[:, None]
    i, j = low[..., 1], low[..., 0]
    above = (1 - x) * meshes[frame, i, j] + x * meshes[frame, i, j + 1]
    below = (1 - x) * meshes[frame, i + 1, j] + x * meshes[frame, i + 1, j + 1]
    return np.asarray((1 - y) * above + y * below, np.float64)


def _homogeneous(matrix: npt.NDArray[Any], xy: npt.NDArray[Any]) -> ArrayF64:
    """(..., P, 3)."""
    points = np.asarray(xy, np.float64)
    turned = points @ np.swapaxes(matrix[..., :2], -1, -2)
    return np.asarray(turned + matrix[..., None, :, 2], np.float64)
