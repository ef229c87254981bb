"""A scope over tissue that is no plane: what each px sees, and how far two frames' maps are off."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ml.geometry import FrameMaps, transform_points
from ml.types import ArrayF64

HILLS_PX = (92.0, 75.0)
"""Picture px a radian of the hills, across and down: some three hills in a view of 470 px."""

REACH = 0.85
"""Share of half the side within which points are compared: inside the round view."""

POINTS_A_SIDE = 9
"""Of the grid of points: finer tells nothing more of a smooth field."""

DISTANCES = (5, 20)
"""Frames apart: most of the overlap, and what loops and drift leave."""


def picture_points(
    H_picture_from_frame: ArrayF64, xy: npt.NDArray[np.floating], *, size_px: int, relief: float
) -> ArrayF64:
    """(P, 2): the picture px that frame px look at.

    Hills stand out by up to ``relief`` of the scope's distance. What stands out by z of it is seen
    nearer to the point below the scope, by z of its way from there (to first order).
    """
    flat = transform_points(H_picture_from_frame, xy)
    half = (size_px - 1) / 2
    below = transform_points(H_picture_from_frame, np.array([[half, half]]))
    height = np.sin(flat[:, 0] / HILLS_PX[0]) * np.sin(flat[:, 1] / HILLS_PX[1])
    return np.asarray(flat - relief * height[:, None] * (flat - below), np.float64)


def pair_errors(
    placed: Mapping[int, FrameMaps],
    truth: Mapping[int, ArrayF64],
    *,
    size_px: int,
    relief: float,
) -> dict[str, float]:
    """Mean distance, picture px, of what two frames see where their maps say the same, by distance.

    A distance is missing where no two frames so far apart overlap.
    """
    grid = _grid(size_px)
    found = {}
    for distance in DISTANCES:
        apart = []
        for first in sorted(placed):
            other = first + distance
            if other not in placed or first not in truth or other not in truth:
                continue
            there = placed[other].to_frame(placed[first].to_plane(grid)[0][0])[0][0]
            seen = _in_view(there, size_px)
            if not seen.any():
                continue
            here, elsewhere = (
                picture_points(truth[index], xy[seen], size_px=size_px, relief=relief)
                for index, xy in ((first, grid), (other, there))
            )
            apart.append(float(np.linalg.norm(here - elsewhere, axis=1).mean()))
        if apart:
            found[str(distance)] = round(float(np.mean(apart)), 3)
    return found


def _grid(size_px: int) -> ArrayF64:
    """(P, 2) points of a frame inside its round view."""
    side = np.linspace(0, size_px - 1, POINTS_A_SIDE)
    xy = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    return np.asarray(xy[_in_view(xy, size_px)], np.float64)


def _in_view(xy: ArrayF64, size_px: int) -> npt.NDArray[np.bool_]:
    half = (size_px - 1) / 2
    return np.asarray(np.linalg.norm(xy - half, axis=1) <= REACH * size_px / 2)
