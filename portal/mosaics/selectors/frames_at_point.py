"""Frames that show a point of a mosaic, and its position in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Q

from ml.geometry import inside_convex
from portal.core.errors import NotFoundError
from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame
from portal.mosaics.planes import rounded_outline
from portal.mosaics.selectors.components import component_of, maps_of, view_of


@dataclass(frozen=True, slots=True)
class FrameAtPoint:
    """A frame that saw a point of the mosaic, and where in the frame.

    Attributes:
        sharpness: larger is sharper, among frames of one video; None if it was not measured.
        uncertainty_px: one standard deviation of the frame's position, mosaic px.
        outline: the frame's view on the mosaic.
    """

    index: int
    pts: int
    time_s: float
    xy_frame: tuple[float, float]
    from_centre_px: float
    sharpness: float | None
    uncertainty_px: float | None
    outline: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class FramesAtPoint:
    """Number of frames that show a point, and the best of them."""

    count: int
    frames: tuple[FrameAtPoint, ...]


def frames_at_point(
    mosaic: Mosaic, *, x: float, y: float, component: int = 0, limit: int = 100
) -> FramesAtPoint:
    """Frames that show a point of the mosaic, the sharpest first.

    Reads only frames whose bounds contain the point, in one query.

    Args:
        x, y: Mosaic pixels (level 0 of the component's canvas).
        component: Index of the component.

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: no such component, or the point is outside of it.
    """
    canvas = component_of(mosaic, component).canvas
    if not (0 <= x <= canvas.width_px and 0 <= y <= canvas.height_px):
        raise NotFoundError(
            f"The point lies outside the mosaic of {canvas.width_px} x {canvas.height_px} px."
        )
    rows = _rows_near(mosaic, x=x, y=y, component=component)
    if not rows:
        return FramesAtPoint(0, ())
    view = view_of(mosaic)
    maps = maps_of(mosaic, [row[2] for row in rows], [row[5] for row in rows])
    xy, is_front = maps.to_frame(np.array([[x, y]], np.float64))
    xy_frame = xy[:, 0]
    in_view = np.flatnonzero(is_front[:, 0] & inside_convex(view, xy_frame))
    away_px = np.linalg.norm(xy_frame - view.mean(axis=0), axis=1)
    order = sorted(in_view, key=lambda i: (-(rows[i][3] or 0.0), away_px[i], rows[i][0]))[:limit]
    outlines, _ = maps.chosen([int(i) for i in order]).to_plane(view)
    second = mosaic.video.time_base_s
    frames = tuple(
        FrameAtPoint(
            index=rows[i][0],
            pts=rows[i][1],
            time_s=round(rows[i][1] * second, 6),
            xy_frame=(round(float(xy_frame[i, 0]), 2), round(float(xy_frame[i, 1]), 2)),
            from_centre_px=round(float(away_px[i]), 2),
            sharpness=rows[i][3],
            uncertainty_px=rows[i][4],
            outline=rounded_outline(outline),
        )
        for i, outline in zip(order, outlines, strict=True)
    )
    return FramesAtPoint(len(in_view), frames)


def _rows_near(mosaic: Mosaic, *, x: float, y: float, component: int) -> list[tuple[Any, ...]]:
    """Index, PTS, transform, sharpness, uncertainty, mesh of the frames around the point."""
    near = Q(left__lte=x, right__gte=x, top__lte=y, bottom__gte=y) | Q(left=None)
    return list(
        MosaicFrame.objects.filter(
            near, mosaic=mosaic, component=component, status=FrameStatus.REGISTERED
        )
        .order_by("index")
        .values_list("index", "pts", "H_mosaic_from_frame", "sharpness", "uncertainty_px", "mesh")
    )
