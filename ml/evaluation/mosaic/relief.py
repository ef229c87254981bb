"""A scope over tissue that is not a plane: how far two frames' maps are off."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ml.evaluation.mosaic.ground import Ground
from ml.geometry import FrameMaps
from ml.types import ArrayF64

REACH = 0.85
"""Share of half the side within which points are compared: inside the round view."""

POINTS_A_SIDE = 9
"""Of the grid of points: finer tells nothing more of a smooth field."""

DISTANCES = (5, 20)
"""Frames apart: most of the overlap, and what loops and drift leave."""


def pair_errors(
    placed: Mapping[int, FrameMaps],
    truth: Mapping[int, ArrayF64],
    ground: Ground,
    *,
    size_px: int,
) -> dict[str, float]:
    """Mean distance, picture px, between what two frames see at one place of the map, by distance.

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
                ground.seen(truth[index], xy[seen], size_px=size_px)
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
