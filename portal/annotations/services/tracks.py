"""Tracks: an ROI on several frames of a video, checked before it is stored.

A track holds the outlines of an ROI on key frames other than its own frame. Between two key frames
the viewer interpolates; before the first and after the last the ROI is absent. A key frame that is
``outside`` ends it until the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from portal.annotations.geometry import is_ellipse, polygons_of, shape_from_geojson
from portal.annotations.models import RoiKind
from portal.annotations.selectors.frames import frame_pts
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError

MAX_KEY_FRAMES = 2_000  # one a second for half an hour; a row with more would slow every list
MAX_TRACK_VERTICES = 200_000  # of all key frames together: 3 MB of JSON
MADE_BY = ("hand", "tracking")
Times = npt.NDArray[np.int64]


class KeyFrame(TypedDict):
    """Outline of an ROI on one frame.

    Attributes:
        index, pts: Index and PTS of the frame.
        geometry: GeoJSON in level-0 pixels; None if it is outside.
        by: "hand", or "tracking", which the next tracking may replace.
        drift_px: Standard error of a tracked outline; 0 if drawn by hand.
    """

    index: int
    pts: int
    geometry: dict[str, Any] | None
    shape: str
    outside: bool
    by: str
    drift_px: float


def track_clean(
    canvas: Canvas, *, own_index: int | None, track: object, is_video_read: bool = True
) -> list[KeyFrame]:
    """The key frames as they would be stored: each checked and repaired like any outline, in order.

    Args:
        own_index: the ROI's own frame, which may be in its track only as outside.
        is_video_read: False if nobody knows yet which frames the video has, and when: each key
            frame has to say both of its names.

    Raises:
        InvalidInputError, InvalidRoiGeometryError: names the frame.
    """
    if not isinstance(track, Sequence) or isinstance(track, str | bytes):
        raise InvalidInputError("track: a list of key frames.")
    if not track:
        return []
    if canvas.kind != CanvasKind.VIDEO or own_index is None:
        raise InvalidInputError("track: only a region on a video can have one.")
    if len(track) > MAX_KEY_FRAMES:
        raise InvalidInputError(f"track: {len(track):,} key frames; {MAX_KEY_FRAMES:,} at most.")
    times = frame_pts(canvas) if is_video_read else None
    by_index: dict[int, KeyFrame] = {}
    vertices = 0
    for raw in track:
        frame = _key_frame(canvas, raw, times=times)
        if frame["index"] in by_index:
            raise InvalidInputError(f"track: frame {frame['index']} is listed twice.")
        if frame["index"] == own_index and not frame["outside"]:
            raise InvalidInputError(
                f"track: frame {own_index} is the frame of the region itself; change its geometry "
                "instead."
            )
        by_index[frame["index"]] = frame
        vertices += _vertices(frame["geometry"])
    if vertices > MAX_TRACK_VERTICES:
        raise InvalidInputError(f"track: {vertices:,} vertices; {MAX_TRACK_VERTICES:,} at most.")
    return [by_index[index] for index in sorted(by_index)]


def _key_frame(canvas: Canvas, raw: object, *, times: Times | None) -> KeyFrame:
    if not isinstance(raw, Mapping):
        raise InvalidInputError("track: each key frame is an object.")
    index, pts = _names(raw, times)
    outside = raw.get("outside", False) is True
    geometry, shape = None, RoiKind.POLYGON.value
    if not outside:
        size = {"width_px": canvas.width_px, "height_px": canvas.height_px}
        frame_shape = shape_from_geojson(raw.get("geometry"), **size)
        geometry = frame_shape.geometry
        if raw.get("shape") == RoiKind.ELLIPSE and is_ellipse(frame_shape):
            shape = RoiKind.ELLIPSE.value
    by = raw.get("by", "hand")
    if by not in MADE_BY:
        raise InvalidInputError(f"track: by is one of {', '.join(MADE_BY)}.")
    return {
        "index": index,
        "pts": pts,
        "geometry": geometry,
        "shape": shape,
        "outside": outside,
        "by": str(by),
        "drift_px": _drift(raw.get("drift_px", 0)),
    }


def _names(raw: Mapping[str, Any], times: Times | None) -> tuple[int, int]:
    """Index and presentation time of a key frame."""
    index: Any = raw.get("index")
    pts: Any = raw.get("pts")
    is_whole = isinstance(index, int) and not isinstance(index, bool)
    if not is_whole or index < 0 or (times is not None and index >= len(times)):
        raise InvalidInputError(f"track: the video has no frame with index {str(index)[:20]}.")
    expected = pts if times is None else int(times[index])
    if isinstance(expected, bool) or not isinstance(expected, int):
        raise InvalidInputError(f"track: frame {index} needs its presentation time.")
    if pts is not None and pts != expected:
        raise InvalidInputError(
            f"track: frame {index} has the presentation time {expected}, not {str(pts)[:20]}.",
            code="frame-mismatch",
        )
    return index, expected


def _drift(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(float(value)) or float(value) < 0:  # type: ignore[arg-type]
        raise InvalidInputError("track: drift_px is a number of pixels, 0 or more.")
    return round(float(value), 3)  # type: ignore[arg-type]


def _vertices(geometry: Mapping[str, Any] | None) -> int:
    return sum(len(ring) for rings in polygons_of(geometry) for ring in rings) if geometry else 0
