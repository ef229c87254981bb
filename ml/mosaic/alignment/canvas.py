"""Stage 5, canvas: a mosaic's pixel plane, its limits, and each frame's transform to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from ml.errors import MosaicError
from ml.geometry import normalised, transform_points, translation
from ml.mosaic.alignment.components import AlignedComponent
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.survey import Survey
from ml.mosaic.registration.result import Tracked
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class PlacedFrame:
    """A registered frame for the layers; see ``FrameResult``."""

    position: int
    index: int
    time_s: float | None
    H_mosaic_from_frame: ArrayF64
    uncertainty_px: float
    mesh: ArrayF64 | None = None


@dataclass(frozen=True, slots=True)
class MosaicCanvas:
    """Pixel plane of a mosaic, aligned with the pixels at the centre of the anchor frame.

    Attributes:
        transforms: position of a keyframe -> H_mosaic_from_frame, full-resolution frame px.
        tracked_transforms: the same for frames between keyframes, each placed by its keyframe.
        meshes: position of either kind of frame -> its mesh, see ``FrameResult``.
    """

    width_px: int
    height_px: int
    transforms: dict[int, ArrayF64]
    tracked_transforms: dict[int, ArrayF64]
    meshes: dict[int, ArrayF64] = field(default_factory=dict)


def lay_out(
    aligned: AlignedComponent, tracked: tuple[Tracked, ...], survey: Survey, *, config: MosaicConfig
) -> MosaicCanvas:
    """Find the plane that holds every placed frame's view.

    Raises:
        MosaicError: the plane would exceed ``config.max_canvas_px`` or ``config.max_side_px``.
    """
    scale = work_from_frame(survey.scale)
    outline = view_outline(survey)
    placed = {f: np.linalg.inv(scale) @ m @ scale for f, m in aligned.transforms.items()}
    spots = np.concatenate([transform_points(m, outline) for m in placed.values()])
    low, high = np.floor(spots.min(axis=0)), np.ceil(spots.max(axis=0))
    width, height = (int(v) for v in high - low + 1)
    if width * height > config.max_canvas_px or max(width, height) > config.max_side_px:
        raise MosaicError(
            f"canvas: the mosaic would be {width} x {height} px; at most {config.max_canvas_px} px"
            f" in all and {config.max_side_px} px a side are allowed; use a shorter span"
        )
    shift = translation(-low[0], -low[1])
    transforms = {f: normalised(shift @ m) for f, m in placed.items()}
    tracked_transforms = {}
    for item in tracked:
        if item.key in transforms:
            moved = np.linalg.inv(scale) @ item.matrix @ scale
            tracked_transforms[item.position] = normalised(transforms[item.key] @ moved)
    return MosaicCanvas(width, height, transforms, tracked_transforms)


def work_from_frame(scale: float) -> ArrayF64:
    """(3, 3): frame px to working px, pixel centres at integers in both."""
    offset = 0.5 * scale - 0.5
    return np.array([[scale, 0, offset], [0, scale, offset], [0, 0, 1.0]])


def view_outline(survey: Survey) -> ArrayF64:
    """(P, 2) float64: the convex outline of the view, frame px."""
    points = cv2.convexHull(cv2.findNonZero(survey.mask.astype(np.uint8))).reshape(-1, 2)
    corners = points.astype(np.float64)
    return transform_points(np.linalg.inv(work_from_frame(survey.scale)), corners)


def tile_file(folder: Path, key: tuple[int, int]) -> Path:
    """File of an accumulator tile that is not in memory, by its column and row."""
    return folder / f"{key[0]}-{key[1]}.npy"
