"""Project ROIs between a mosaic and the frames of its video, by the frames' transforms.

A projected outline is derived at each request and never stored: the ROI remains where it was drawn.
Straight edges stay straight under a homography, so transforming the corners is enough; a mesh bends
them, so edges are first cut into short pieces. Parts outside the view are cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from django.db.models import Q
from shapely.geometry import LineString, MultiLineString, MultiPoint, MultiPolygon, Polygon, mapping
from shapely.geometry.base import BaseGeometry

from ml.geometry import FrameMaps
from ml.types import ArrayBool, ArrayF64
from portal.annotations.geometry import GeoJsonGeometry, polygons_of
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import Roi, RoiKind
from portal.core.errors import NotFoundError
from portal.labs.models import User
from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame
from portal.mosaics.planes import rounded_outline
from portal.mosaics.selectors.components import component_of, maps_of, view_of
from portal.mosaics.selectors.frames_at_point import FrameAtPoint

MIN_AREA_PX = 1.0
"""Less than a pixel of an outline cannot be seen."""

MAX_ROIS, MAX_FRAMES = 2000, 200
"""Limits: ROIs that a page can draw, and frames that a person will look through."""

DECIMALS = 2
"""Decimals of a corner, as in stored outlines."""

PIECES = 24
"""An edge across a bent view is cut into so many: three between two nodes of a mesh."""

Move = Callable[[ArrayF64], tuple[ArrayF64, ArrayBool]]
"""(P, 2) points of one plane: where they lie on the other, and whether there at all."""


@dataclass(frozen=True, slots=True)
class ProjectedRoi:
    """An ROI projected onto another plane than the one it was drawn on.

    Attributes:
        geometry: GeoJSON on the target plane, cut to the visible part.
        share: Visible share of the outline's area.
        uncertainty_px: One standard deviation of the frame's position on the mosaic.
    """

    roi: Roi
    geometry: GeoJsonGeometry
    share: float
    uncertainty_px: float | None


@dataclass(frozen=True, slots=True)
class RoiInFrame:
    """A frame that sees an ROI of the mosaic: as for a point, with the outline in the frame."""

    frame: FrameAtPoint
    geometry: GeoJsonGeometry
    share: float


def rois_on_component(user: User, mosaic: Mosaic, *, component: int = 0) -> list[ProjectedRoi]:
    """ROIs drawn on frames of the video, projected onto a component of the mosaic."""
    component_row = component_of(mosaic, component)
    drawn = Roi.objects.visible_to(user).live()
    drawn = drawn.filter(canvas=mosaic.video.canvas, frame_index__isnull=False)
    rois = list(drawn.select_related("label").order_by("created_at", "id")[:MAX_ROIS])
    placed = _frame_placements(
        mosaic, {roi.frame_index for roi in rois if roi.frame_index is not None}, component
    )
    plane = shapely.box(0, 0, component_row.canvas.width_px, component_row.canvas.height_px)
    projected = []
    for roi in rois:
        if roi.frame_index not in placed:
            continue
        row, uncertainty_px = placed[roi.frame_index]
        maps = maps_of(mosaic, [row[0]], [row[1]])
        if cut := projected_geometry(roi.geometry, maps.to_plane, plane, piece_px(maps)):
            projected.append(ProjectedRoi(roi, *cut, uncertainty_px))
    return projected


def rois_in_frame(user: User, mosaic: Mosaic, *, pts: int) -> list[ProjectedRoi]:
    """ROIs drawn on the mosaic, projected into one frame of the video.

    Raises:
        NotFoundError: the mosaic has no such frame. One that is not registered sees nothing.
    """
    frame = MosaicFrame.objects.filter(mosaic=mosaic, pts=pts).first()
    if frame is None:
        raise NotFoundError(f"The mosaic has no frame at PTS {pts}.", code="frame-not-found")
    if frame.H_mosaic_from_frame is None:
        return []
    canvas_id = component_of(mosaic, frame.component or 0).canvas_id
    near = Q()
    if frame.left is not None:
        near = Q(right__gte=frame.left, left__lte=frame.right)
        near &= Q(bottom__gte=frame.top, top__lte=frame.bottom)
    rois = Roi.objects.visible_to(user).live().filter(near, canvas_id=canvas_id)
    rois = rois.select_related("label")
    view = Polygon(view_of(mosaic))
    maps = maps_of(mosaic, [frame.H_mosaic_from_frame], [frame.mesh])
    projected = []
    for roi in rois.order_by("created_at", "id")[:MAX_ROIS]:
        if cut := projected_geometry(roi.geometry, maps.to_frame, view, piece_px(maps)):
            projected.append(ProjectedRoi(roi, *cut, frame.uncertainty_px))
    return projected


def frames_of_roi(mosaic: Mosaic, roi: Roi) -> list[RoiInFrame]:
    """The frames that see an ROI, with its outline in each; those that see all of it first.

    Raises:
        NotFoundError: the ROI is not on this mosaic.
    """
    components = {component.canvas_id: component.index for component in mosaic.components.all()}
    if roi.canvas_id not in components:
        raise NotFoundError("This region is not on this mosaic.", code="roi-elsewhere")
    near = Q(left__lte=roi.right, right__gte=roi.left, top__lte=roi.bottom, bottom__gte=roi.top)
    rows = list(
        MosaicFrame.objects.filter(
            near | Q(left=None),
            mosaic=mosaic,
            component=components[roi.canvas_id],
            status=FrameStatus.REGISTERED,
        ).order_by("index")
    )
    frames = sorted(_rois_in_frames(mosaic, roi, rows), key=_sharpest_first)
    return frames[:MAX_FRAMES]


def piece_px(maps: FrameMaps) -> float | None:
    """The length to which edges are cut before they are moved; None if they stay straight."""
    return None if maps.meshes is None else max(maps.size_px) / PIECES


def projected_geometry(
    geometry: GeoJsonGeometry, move: Move, view: BaseGeometry, piece: float | None = None
) -> tuple[GeoJsonGeometry, float] | None:
    """GeoJSON outline projected onto another plane, cut to the visible part, and its share.

    None if nothing is left, or a corner is behind the plane.

    Args:
        piece: Longest edge that is moved without being cut, px; None moves only the corners.
    """
    if mark_kind(geometry):
        return _projected_mark(geometry, move, view, piece)
    moved = []
    for rings in polygons_of(geometry):
        corners = [move(_densify(ring, piece)) for ring in rings]
        if not all(is_front.all() for _, is_front in corners):
            return None
        shell, *holes = [xy[0] for xy, _ in corners]
        moved.append(Polygon(shell, holes))
    projected: BaseGeometry = shapely.make_valid(
        MultiPolygon(moved) if len(moved) > 1 else moved[0]
    )
    cut = _polygons_of(shapely.intersection(projected, view))
    if cut is None or cut.area < MIN_AREA_PX:
        return None
    share = min(1.0, float(cut.area / max(projected.area, 1e-9)))
    plain = mapping(shapely.set_precision(cut, 10**-DECIMALS))
    return {"type": plain["type"], "coordinates": plain["coordinates"]}, round(share, 4)


def _projected_mark(
    geometry: GeoJsonGeometry, move: Move, view: BaseGeometry, piece: float | None
) -> tuple[GeoJsonGeometry, float] | None:
    """Points or lines; the share is that of the points, or of the length."""
    is_line = mark_kind(geometry) == RoiKind.LINE
    moved = []
    for part in mark_parts(geometry):
        xy, is_front = move(_densify(part, piece if is_line else None))
        if not is_front.all():
            return None
        moved.append(xy[0])
    projected: BaseGeometry = MultiLineString(moved) if is_line else MultiPoint(np.vstack(moved))
    parts = shapely.get_parts(shapely.intersection(projected, view))
    parts_left = [part for part in parts if (part.geom_type == "LineString") == is_line]
    if not parts_left:
        return None
    share = (
        sum(p.length for p in parts_left) / projected.length
        if is_line
        else len(parts_left) / len(moved)
    )
    cut = shapely.multilinestrings(parts_left) if is_line else shapely.multipoints(parts_left)
    plain = mapping(shapely.transform(cut, lambda xy: np.round(xy, DECIMALS)))
    return {"type": plain["type"], "coordinates": plain["coordinates"]}, round(min(1.0, share), 4)


def _densify(line: Any, piece: float | None) -> ArrayF64:
    """(P, 2): the corners of a line, with points between them where its edges are long."""
    xy = np.array(line, np.float64)
    return (
        xy if piece is None else shapely.get_coordinates(shapely.segmentize(LineString(xy), piece))
    )


def _frame_placements(
    mosaic: Mosaic, indices: set[int], component: int
) -> dict[int | None, tuple[tuple[Any, Any], float | None]]:
    """Transform with mesh, and uncertainty, of the registered ones among these frames."""
    rows = MosaicFrame.objects.filter(
        mosaic=mosaic, component=component, status=FrameStatus.REGISTERED, index__in=indices
    ).values_list("index", "H_mosaic_from_frame", "mesh", "uncertainty_px")
    return {index: ((H, mesh), uncertainty_px) for index, H, mesh, uncertainty_px in rows}


def _rois_in_frames(mosaic: Mosaic, roi: Roi, rows: Sequence[MosaicFrame]) -> Iterator[RoiInFrame]:
    if not rows:
        return
    view = view_of(mosaic)
    view_polygon, second = Polygon(view), mosaic.video.time_base_s
    maps = maps_of(mosaic, [row.H_mosaic_from_frame for row in rows], [row.mesh for row in rows])
    outlines, _ = maps.to_plane(view)
    for number, (row, outline) in enumerate(zip(rows, outlines, strict=True)):
        frame_map = maps.chosen([number])
        cut = projected_geometry(
            roi.geometry, frame_map.to_frame, view_polygon, piece_px(frame_map)
        )
        if cut is None:
            continue
        centre = frame_map.to_frame(np.array([[roi.centroid_x, roi.centroid_y]]))[0][0, 0]
        frame = FrameAtPoint(
            index=row.index,
            pts=row.pts,
            time_s=round(row.pts * second, 6),
            xy_frame=(round(float(centre[0]), 2), round(float(centre[1]), 2)),
            from_centre_px=round(float(np.linalg.norm(centre - view.mean(axis=0))), 2),
            sharpness=row.sharpness,
            uncertainty_px=row.uncertainty_px,
            outline=rounded_outline(outline),
        )
        yield RoiInFrame(frame, *cut)


def _sharpest_first(roi_in_frame: RoiInFrame) -> tuple[float, float, int]:
    """Frames that see all of it before those that see a part, to a tenth."""
    return (
        -round(roi_in_frame.share, 1),
        -(roi_in_frame.frame.sharpness or 0.0),
        roi_in_frame.frame.index,
    )


def _polygons_of(shape: BaseGeometry) -> Polygon | MultiPolygon | None:
    """The areas of it, without the points and lines an intersection may leave."""
    parts = shapely.get_parts(shape).tolist()
    polygons = [part for part in parts if isinstance(part, Polygon) and part.area > 0]
    if not polygons:
        return None
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)
