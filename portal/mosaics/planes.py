"""Transforms and views of a mosaic's frames as arrays, read from the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ml.geometry import FrameMaps, box_corners
from ml.types import ArrayF64

DRAWN_CORNERS = 32
"""Number of corners of a drawn outline; enough to look round."""


def matrices(rows: Sequence[Any]) -> ArrayF64:
    """(N, 3, 3) float64 of the matrices as the database has them."""
    return np.array(rows, np.float64).reshape(-1, 3, 3)


def frame_maps(
    rows: Sequence[Any], meshes: Sequence[Any], *, size_px: tuple[int, int]
) -> FrameMaps:
    """The maps of frames to their plane, of transforms and meshes as the database has them.

    Args:
        meshes: one a row, None if the transform is all.
        size_px: (width, height) of the frames.
    """
    shape = next((np.shape(mesh) for mesh in meshes if mesh is not None), None)
    if shape is None:
        return FrameMaps(matrices(rows), None, size_px)
    flat = np.zeros(shape)
    mesh_of_frame = np.array([flat if mesh is None else mesh for mesh in meshes], np.float64)
    return FrameMaps(matrices(rows), mesh_of_frame, size_px)


def view_polygon(
    view_outline: Sequence[Sequence[float]], *, width_px: int, height_px: int
) -> ArrayF64:
    """(P, 2) float64: the scope's view in frame pixels; the whole frame where none is known."""
    if len(view_outline) >= 3:
        return np.array(view_outline, np.float64)
    return box_corners(0, 0, width_px - 1, height_px - 1)


def thinned(polygon: ArrayF64, *, at_most: int) -> ArrayF64:
    """Fewer corners of a fine outline: enough to draw it."""
    if len(polygon) <= at_most:
        return polygon
    fewer: ArrayF64 = polygon[np.linspace(0, len(polygon), at_most, endpoint=False).astype(int)]
    return fewer


def rounded_outline(outline: ArrayF64) -> tuple[tuple[float, float], ...]:
    """Corners to draw, to a hundredth of a pixel."""
    return tuple(
        (round(float(x), 2), round(float(y), 2)) for x, y in thinned(outline, at_most=DRAWN_CORNERS)
    )
