"""Scenes: frames of one recording with the outlines of places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from shapely.geometry import Polygon

from ml.types import ArrayBool, ArrayF64, ImageU8


@dataclass(frozen=True, slots=True)
class PlaceRegion:
    """One place in one frame.

    Attributes:
        frame: index of the frame.
        place: number of the place in its scene.
        outline: (K, 2) float64, pixels of the frame.
    """

    frame: int
    place: int
    outline: ArrayF64

    @property
    def polygon(self) -> Polygon:
        """The outline as a polygon, in pixels of the frame."""
        return Polygon(self.outline.round(1))


@dataclass(frozen=True, slots=True)
class Scene:
    """One recording.

    Attributes:
        name: of the recording.
        truth: "sweep" or "kinds" (simulated), or "sfm" (structure from
            motion).
        frames: (H, W, 3) uint8 RGB each.
        mask: (H, W) bool field of view.
        regions: of all places.
        visits: (N,) visit of each frame. Frames are far from each other if they are of two
            visits, or at least ``far_gap`` apart.
        near_gap: frames closer than this are not searched.
    """

    name: str
    truth: str
    frames: Sequence[ImageU8]
    mask: ArrayBool
    regions: tuple[PlaceRegion, ...]
    visits: tuple[int, ...]
    near_gap: int
    far_gap: int

    def gallery(self, query: int, distance: str) -> np.ndarray:
        """(M,) int64 regions "near" or "far" among which region ``query`` is searched."""
        frame = np.array([region.frame for region in self.regions])
        visit = np.array(self.visits)[frame]
        gap = np.abs(frame - frame[query])
        is_far = (visit != visit[query]) | (gap >= self.far_gap)
        searched = is_far if distance == "far" else ~is_far & (gap >= self.near_gap)
        return np.flatnonzero(searched)


def square(centre: ArrayF64, side_px: float) -> ArrayF64:
    """(4, 2) float64 corners of an upright square."""
    return np.asarray(centre + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * side_px / 2)


def sees(outline: ArrayF64, inside: ArrayBool) -> bool:
    """Return whether all corners (K, 2) are on True pixels of (H, W)."""
    height, width = inside.shape
    cells = np.floor(outline).astype(int)
    if (cells < 0).any() or (cells[:, 0] >= width).any() or (cells[:, 1] >= height).any():
        return False
    return bool(inside[cells[:, 1], cells[:, 0]].all())
