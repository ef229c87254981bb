"""Frame pixels and mosaic pixels: many transforms at once, in NumPy alone.

The web process does not import the engine, and needs no more of it than this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MIN_DEPTH = 1e-9  # a homography's w at or below it: the point lies behind the frame


def matrices(rows: Sequence[Any]) -> Floats:
    """(N, 3, 3) float64 of the matrices as the database has them."""
    return np.array(rows, np.float64).reshape(-1, 3, 3)


def inverse(H: Floats) -> Floats:
    """(N, 3, 3): the way back."""
    return np.asarray(np.linalg.inv(H), np.float64)


def points_through(H: Floats, xy: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Points through each of N homographies.

    Args:
        H: (N, 3, 3). xy: (P, 2) float64, the same points for all.

    Returns:
        (N, P, 2) float64, and (N, P) bool: False where the point lies behind the plane.
    """
    ones = np.concatenate([xy, np.ones((len(xy), 1))], axis=1)
    found = ones @ H.transpose(0, 2, 1)
    is_front = found[..., 2] > MIN_DEPTH
    return found[..., :2] / np.where(is_front, found[..., 2], 1.0)[..., None], is_front


def view_polygon(outline: Sequence[Sequence[float]], *, width_px: int, height_px: int) -> Floats:
    """(P, 2) float64: the scope's view in frame pixels; the whole frame where none is known."""
    if len(outline) >= 3:
        return np.array(outline, np.float64)
    right, bottom = float(width_px - 1), float(height_px - 1)
    return np.array([[0, 0], [right, 0], [right, bottom], [0, bottom]])


def inside_convex(polygon: Floats, xy: Floats, *, margin_px: float = 0.5) -> npt.NDArray[np.bool_]:
    """(N,) bool: which of ``xy`` (N, 2) lie in the convex polygon, or within the margin of it."""
    ahead = np.roll(polygon, -1, axis=0)
    edge = ahead - polygon
    area = float(np.sum(polygon[:, 0] * ahead[:, 1] - ahead[:, 0] * polygon[:, 1]))
    length = np.maximum(np.linalg.norm(edge, axis=1), 1e-12)
    away = xy[:, None, :] - polygon[None]
    cross = edge[:, 0] * away[..., 1] - edge[:, 1] * away[..., 0]
    distance = np.sign(area) * cross / length
    return np.asarray((distance >= -margin_px).all(axis=1))


def bounds_of(H: Floats, polygon: Floats) -> Floats:
    """(N, 4) float64: left, top, right, bottom of the polygon through each transform.

    Infinite where a corner lies behind the plane: such a frame is never left out of a search.
    """
    xy, is_front = points_through(H, polygon)
    low, high = xy.min(axis=1), xy.max(axis=1)
    found = np.concatenate([low, high], axis=1)
    found[~is_front.all(axis=1)] = [-np.inf, -np.inf, np.inf, np.inf]
    return found
