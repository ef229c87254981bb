"""Compute the columns of a change: validated names, labels and outlines that differ."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any, Literal, TypedDict

from portal.annotations.geometry import DECIMALS, RoiShape, is_ellipse
from portal.annotations.marks import MARKS, mark_kind, outline_from_geojson
from portal.annotations.models import Label, ReviewState, Roi, RoiKind, RoiRevision
from portal.annotations.properties import description_clean, properties_clean
from portal.annotations.qupath import MAX_FOREIGN_BYTES
from portal.annotations.services.tracks import track_clean
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.serialized import SerializedDict
from portal.core.text import name_clean

NAME_MAX = 120  # as the column
_ALIKE = 1e-6  # relative: how far a measure may differ with another release of GEOS
MEASURES: tuple[
    Literal["left", "top", "right", "bottom", "centroid_x", "centroid_y", "area_px"], ...
] = ("left", "top", "right", "bottom", "centroid_x", "centroid_y", "area_px")
"""Columns derived from the outline."""
REVIEWED = frozenset({"geometry", "track", "label"})
"""Reviewed fields: changing one of them resets the review."""


class RoiChanges(TypedDict, total=False):
    """Editable fields of ``roi_update``; omitted ones keep their values."""

    geometry: object
    name: str
    description: str
    properties: object
    label: Label | None
    review_state: str
    shape: str
    is_locked: bool
    foreign: dict[str, Any]
    track: object


class RoiColumns(TypedDict, total=False):
    """The columns of an ROI that a change writes."""

    geometry: SerializedDict
    left: float
    top: float
    right: float
    bottom: float
    centroid_x: float
    centroid_y: float
    area_px: float
    foreign: dict[str, Any]
    track: object
    shape: str
    name: str
    description: str
    properties: dict[str, str]
    label: Label | None
    is_locked: bool
    review_state: str
    deleted_at: datetime | None


def roi_shape(canvas: Canvas, geometry: object) -> RoiShape:
    """Shape as it would be stored on this canvas; see ``outline_from_geojson``."""
    return outline_from_geojson(geometry, width_px=canvas.width_px, height_px=canvas.height_px)


def shape_kind(shape: RoiShape, claimed: str) -> str:
    """Kind of an ROI: of points and lines by the geometry; an ellipse if the shape still is one.

    Raises:
        InvalidInputError: unknown shape.
    """
    if claimed not in RoiKind.values:
        raise InvalidInputError(f"shape: one of {', '.join(RoiKind.values)}.")
    if kind := mark_kind(shape.geometry):
        return kind
    return claimed if claimed == RoiKind.ELLIPSE and is_ellipse(shape) else RoiKind.POLYGON.value


def shape_fields(shape: RoiShape) -> RoiColumns:
    """The columns that follow from an outline."""
    left, top, right, bottom = shape.bounds
    return {
        "geometry": shape.geometry,
        "left": left,
        "top": top,
        "right": right,
        "bottom": bottom,
        "centroid_x": shape.centroid[0],
        "centroid_y": shape.centroid[1],
        "area_px": shape.area_px,
    }


def changed_fields(roi: Roi, changes: RoiChanges) -> tuple[RoiColumns, tuple[str, ...]]:
    """Columns that a change writes, and notes on corrections of the outline.

    Raises:
        ConflictError: the ROI is locked, and the change does not unlock it.
        InvalidInputError, InvalidRoiGeometryError.
    """
    fields, notes = _changed_outline(roi, changes)
    if "track" in changes:
        track = track_clean(roi.canvas, own_index=roi.frame_index, track=changes["track"])
        if track != roi.track:
            fields["track"] = track
    require_area(fields.get("shape", roi.shape), fields.get("track", roi.track))
    fields |= _changed_words(roi, changes)
    if "label" in changes:
        label = changes["label"]
        if (label.pk if label else None) != roi.label_id:
            check_label(roi.canvas, label)
            fields["label"] = label
    if changes.get("is_locked", roi.is_locked) != roi.is_locked:
        fields["is_locked"] = changes["is_locked"]
    elif fields:
        require_unlocked(roi)
    is_new = bool(REVIEWED & fields.keys())
    state = changes.get("review_state", ReviewState.DRAFT if is_new else roi.review_state)
    if state != roi.review_state or (is_new and "review_state" in changes):
        fields["review_state"] = _review_state(state)  # reviewing a new state is a separate step
    return fields, notes


def _changed_words(roi: Roi, changes: RoiChanges) -> RoiColumns:
    """Name, description and properties, as far as they are given and differ, as they are stored."""
    words = RoiColumns()
    if "name" in changes and (name := clean_name(changes["name"])) != roi.name:
        words["name"] = name
    if "description" in changes:
        description = description_clean(changes["description"])
        if description != roi.description:
            words["description"] = description
    if "properties" in changes:
        properties = properties_clean(changes["properties"])
        if properties != roi.properties:
            words["properties"] = properties
    return words


def _changed_outline(roi: Roi, changes: RoiChanges) -> tuple[RoiColumns, tuple[str, ...]]:
    fields = RoiColumns()
    if "geometry" not in changes and "shape" not in changes:
        return fields, ()
    shape = roi_shape(roi.canvas, changes.get("geometry", roi.geometry))
    if shape.geometry != roi.geometry:
        # Measurements and "this is an ellipse" were true of the old outline only.
        fields = shape_fields(shape)
        fields["foreign"] = changes.get("foreign", {})
    claimed = changes.get("shape", RoiKind.POLYGON if fields else roi.shape)
    if (kind := shape_kind(shape, claimed)) != roi.shape:
        fields["shape"] = kind
    return fields, shape.notes


def require_as_stored(row: Roi | RoiRevision, *, canvas: Canvas, own_index: int | None) -> None:
    """Check that a row from elsewhere is as it would be stored here.

    Its frames are not looked up: the video may not have been read yet.

    Args:
        own_index: the frame of the ROI, None if the canvas has none.
    Raises:
        InvalidInputError, InvalidRoiGeometryError: names the column.
    """
    shape = roi_shape(canvas, row.geometry)
    track = track_clean(canvas, own_index=own_index, track=row.track, is_video_read=False)
    stored = {
        "geometry": shape.geometry,
        "shape": shape_kind(shape, row.shape),
        "track": track,
        "properties": properties_clean(row.properties),
    }
    odd = [name for name, value in stored.items() if getattr(row, name) != value]
    if isinstance(row, Roi):
        if len(json.dumps(row.foreign)) > MAX_FOREIGN_BYTES:
            raise InvalidInputError(f"foreign: longer than {MAX_FOREIGN_BYTES:,} bytes.")
        computed = shape_fields(shape)
        odd += [name for name in MEASURES if not _alike(getattr(row, name), computed[name])]
    if odd:
        raise InvalidInputError(f"{odd[0]}: it differs from what would be stored.")
    require_area(row.shape, row.track)


def _alike(stored: float, computed: float) -> bool:
    return math.isclose(stored, computed, rel_tol=_ALIKE, abs_tol=10**-DECIMALS)


def require_area(kind: str, track: object) -> None:
    """Raise ``InvalidInputError`` where points or a line have key frames."""
    if kind in MARKS and track:
        raise InvalidInputError("track: only an area has key frames; points and lines have none.")


def require_unlocked(roi: Roi) -> None:
    """Raise ``ConflictError`` where the ROI is locked."""
    if roi.is_locked:
        raise ConflictError("This region is locked. Unlock it first.", code="roi-locked")


def clean_name(name: str) -> str:
    """Clean a name by ``name_clean``; ``InvalidInputError`` if it is too long."""
    name = name_clean(name)
    if len(name) > NAME_MAX:
        raise InvalidInputError(f"name: {len(name)} characters; {NAME_MAX} at most.")
    return name


def _review_state(value: str) -> str:
    if value not in ReviewState.values:
        raise InvalidInputError(f"review_state: one of {', '.join(ReviewState.values)}.")
    return value


def check_label(canvas: Canvas, label: Label | None) -> None:
    """Raise ``InvalidInputError`` unless the label is of the canvas' lab, and in use."""
    if label is not None and label.lab_id != canvas.lab_id:
        raise InvalidInputError("label: no such label in this lab.", code="unknown-label")
    if label is not None and label.retired_at is not None:
        raise InvalidInputError(
            f'label: "{label.name}" was retired; choose another.', code="label-retired"
        )
