"""Errors between the maps of two frames, over ground that is not a plane."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ml.evaluation.mosaic.ground import Ground
from ml.geometry import FrameMaps
from ml.types import ArrayF64

REACH = 0.85
"""Radius of the compared area, as a share of half the side: inside the round view."""

POINTS_A_SIDE = 9
"""Side of the grid of points."""

DISTANCES = (5, 20)
"""Distances in frames."""


def pair_errors(
    placed: Mapping[int, FrameMaps],
    truth: Mapping[int, ArrayF64],
    ground: Ground,
    *,
    size_px: int,
) -> dict[str, float]:
    """Mean distance in picture px between the points two frames show at one place of the mosaic.

    Returns:
        By distance in frames, without distances at which no frames overlap.
    """
    grid = _grid(size_px)
    errors = {}
    for distance in DISTANCES:
        distances = []
        for first in sorted(placed):
            other = first + distance
            if other not in placed or first not in truth or other not in truth:
                continue
            xy_other = placed[other].to_frame(placed[first].to_plane(grid)[0][0])[0][0]
            in_view = _in_view(xy_other, size_px)
            if not in_view.any():
                continue
            xy_by_first, xy_by_other = (
                ground.picture_points(truth[index], xy[in_view], size_px=size_px)
                for index, xy in ((first, grid), (other, xy_other))
            )
            distances.append(float(np.linalg.norm(xy_by_first - xy_by_other, axis=1).mean()))
        if distances:
            errors[str(distance)] = round(float(np.mean(distances)), 3)
    return errors


def _grid(size_px: int) -> ArrayF64:
    """(P, 2) points of a frame inside its round view."""
    side = np.linspace(0, size_px - 1, POINTS_A_SIDE)
    xy = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    return np.asarray(xy[_in_view(xy, size_px)], np.float64)


def _in_view(xy: ArrayF64, size_px: int) -> npt.NDArray[np.bool_]:
    half = (size_px - 1) / 2
    return np.asarray(np.linalg.norm(xy - half, axis=1) <= REACH * size_px / 2)
