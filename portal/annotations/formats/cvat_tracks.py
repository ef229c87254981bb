"""A track of CVAT as one region with key frames, and back.

CVAT shows a track from a key frame to the next one, holds it after the last, and ends it by a key
frame that is *outside*. Here a region is there from its first to its last key frame, and is
interpolated between two. So what CVAT holds after the last key frame becomes a key frame where the
file stops, and a track that is written ends by one that is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NotRequired, TypedDict

from portal.annotations.formats.pieces import pieces_of
from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.models import Roi
from portal.annotations.qupath import Feature, Problem

Read = Callable[[Any], Feature | Problem]
_MAX_NOTES = 5  # of key frames left out


class _Key(TypedDict):
    """A key frame as the file says it, unchecked: what ``Feature.track`` holds."""

    index: int
    geometry: object
    outside: bool
    shape: NotRequired[str]


def track_feature(shapes: Sequence[Any], *, read: Read) -> Feature | Problem | None:
    """The region of a track: its first key frame, with the others as ``Feature.track``.

    Args:
        shapes: elements, in the order of the file.
        read: one of them as a feature.
    Returns:
        None for a track that is nowhere.
    """
    first: Feature | None = None
    problem: Problem | None = None
    track: list[_Key] = []
    notes: list[str] = []
    for shape in _keys(shapes):
        number = shape.get("frame") or ""
        if shape.get("outside") == "1":
            if first is not None and number.isdecimal():
                track.append({"index": int(number), "geometry": None, "outside": True})
            continue
        shape_read = read(shape)
        if isinstance(shape_read, Problem):
            problem = problem or shape_read
            notes.append(f"key frame {number[:12]} left out: {shape_read.reason}")
        elif first is None:
            first = shape_read
        else:
            track.append(
                {
                    "index": shape_read.t,
                    "geometry": shape_read.geometry,
                    "shape": shape_read.kind,
                    "outside": False,
                }
            )
    if first is None:
        return problem
    _trim(track, first.t)
    if len(notes) > _MAX_NOTES:
        notes[_MAX_NOTES:] = [f"{len(notes) - _MAX_NOTES} more key frames were left out"]
    return replace(first, track=track, notes=(*first.notes, *notes))


def _keys(shapes: Sequence[Any]) -> Iterator[Any]:
    """Key frames; and the last shape, where the track is held up to the end of the file."""
    for place, shape in enumerate(shapes):
        is_key = shape.get("keyframe", "1") != "0"
        if is_key or (place == len(shapes) - 1 and shape.get("outside") != "1"):
            yield shape


def _trim(track: list[_Key], own_index: int) -> None:
    """Leave out an end right after the last key frame: a region ends there anyway."""
    if track and track[-1]["outside"]:
        is_there, index = True, own_index
        if len(track) > 1:
            is_there, index = not track[-2]["outside"], track[-2]["index"]
        if not is_there or track[-1]["index"] <= index + 1:
            track.pop()


def track_states(roi: Roi) -> list[list[tuple[int, list[list[float]] | None]]]:
    """The tracks that CVAT gets: frames, each with its ring, None where it is outside.

    CVAT's polygons are single rings: a region of several parts, or with holes, becomes several
    tracks. Each ends by a frame that is outside, or it would be held to the end of the video.
    """
    keys = _frames(roi)
    rings = {index: pieces_of(geometry) if geometry else [] for index, geometry in keys.items()}
    tracks = []
    for part in range(max((len(parts) for parts in rings.values()), default=0)):
        states: list[tuple[int, list[list[float]] | None]] = []
        for index in sorted(rings):
            parts = rings[index]
            ring = parts[part] if part < len(parts) else None
            if ring is not None or (states and states[-1][1] is not None):
                states.append((index, ring))
        if states and states[-1][1] is not None:
            states.append((states[-1][0] + 1, None))
        tracks.append(states)
    return tracks


def _frames(roi: Roi) -> dict[int, GeoJsonGeometry | None]:
    own_index = roi.frame_index or 0
    geometry_of_frame: dict[int, GeoJsonGeometry | None] = {own_index: roi.geometry}
    for key in roi.track:
        if key["index"] != own_index or key["outside"]:
            geometry_of_frame[key["index"]] = None if key["outside"] else key["geometry"]
    return geometry_of_frame
