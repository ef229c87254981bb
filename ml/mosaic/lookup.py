"""Points, outlines and polygons between a mosaic and its frames: NumPy only, from the manifest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.geometry import inverse, transform_points
from ml.mosaic.result import MosaicFrame, MosaicResult
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class Sighting:
    """A frame that saw a point of the mosaic.

    Attributes:
        xy_frame: where, frame px. scale: frame px per mosaic px there; larger is nearer.
    """

    frame: MosaicFrame
    xy_frame: tuple[float, float]
    scale: float


def frames_seeing(
    result: MosaicResult, xy_mosaic: tuple[float, float], *, component: int = 0
) -> tuple[Sighting, ...]:
    """The registered frames whose view holds a point of a mosaic, sharpest first.

    Raises:
        BadInputError: the manifest holds no view (format 1).
    """
    view = _view(result)
    point = np.array([*xy_mosaic, 1.0])
    found = []
    for frame in result.frames:
        if frame.component != component or frame.H_mosaic_from_frame is None:
            continue
        x, y, w = np.linalg.solve(frame.H_mosaic_from_frame, point)
        if w > 0 and holds(view, (x / w, y / w)):
            scale = 1 / math.sqrt(abs(_area_scale(frame.H_mosaic_from_frame, (x / w, y / w))))
            found.append(Sighting(frame, (float(x / w), float(y / w)), scale))
    return tuple(sorted(found, key=lambda s: (-(s.frame.sharpness or 0.0), s.frame.index)))


def frame_outline(result: MosaicResult, frame: MosaicFrame) -> ArrayF64:
    """(P, 2) float64: outline of a registered frame's view, px of its component's mosaic.

    Raises:
        BadInputError: the frame is not registered, or the manifest holds no view.
    """
    return polygon_to_mosaic(frame, _view(result))


def polygon_to_mosaic(frame: MosaicFrame, xy_frame: npt.NDArray[Any]) -> ArrayF64:
    """(P, 2) px of the frame's mosaic, of (P, 2) frame px."""
    return transform_points(_matrix(frame), xy_frame)


def polygon_to_frame(frame: MosaicFrame, xy_mosaic: npt.NDArray[Any]) -> ArrayF64:
    """(P, 2) frame px, of (P, 2) px of the frame's mosaic."""
    return transform_points(inverse(_matrix(frame)), xy_mosaic)


def holds(outline: npt.NDArray[Any], xy: tuple[float, float]) -> bool:
    """Whether a convex outline, (P, 2) in either direction, holds a point; its edge counts."""
    ahead = np.roll(outline, -1, axis=0) - outline
    to_point = np.array(xy) - outline
    side = ahead[:, 0] * to_point[:, 1] - ahead[:, 1] * to_point[:, 0]
    return bool((side >= -1e-9).all() or (side <= 1e-9).all())


def _area_scale(matrix: ArrayF64, xy: tuple[float, float]) -> float:
    """Mosaic px2 per frame px2 at a frame point: det(H) / w^3."""
    w = float(matrix[2] @ np.array([*xy, 1.0]))
    return max(float(np.linalg.det(matrix)) / w**3, 1e-12)


def _matrix(frame: MosaicFrame) -> ArrayF64:
    if frame.H_mosaic_from_frame is None:
        raise BadInputError(f"frame {frame.index}: expected a registered frame, got {frame.status}")
    return frame.H_mosaic_from_frame


def _view(result: MosaicResult) -> ArrayF64:
    if result.view is None:
        raise BadInputError("mosaic.json: expected format 2 with the outline of the view")
    return result.view
