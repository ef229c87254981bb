"""Events of a video in COCO's JSON: its ``videos``, and ``events`` with their frames.

COCO has no events, and its readers skip members that they do not know. ``videos`` is the table
that COCO's formats for video add, with ``video_id`` and ``frame_id`` of an image.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeGuard

from ml.types import JsonObject
from portal.annotations.formats.images import name_is_of
from portal.annotations.formats.types import Plane
from portal.annotations.models import VideoEvent
from portal.annotations.qupath import EventFeature, Problem, feature_description, one_line

VIDEO_ID = 1
"""The video of a document that is written: it has one."""


def video_tables(plane: Plane, events: Iterable[VideoEvent]) -> dict[str, list[JsonObject]]:
    """The members of a document that other canvases than videos lack."""
    video = {"id": VIDEO_ID, "name": plane.name, "width": plane.width_px, "height": plane.height_px}
    listed: list[JsonObject] = [
        {
            "id": number,
            "video_id": VIDEO_ID,
            "name": event.name,
            "note": event.note,
            "first_frame": event.first_index,
            "last_frame": event.last_index,
            "attributes": {"id": str(event.pk)},
        }
        for number, event in enumerate(events, start=1)
    ]
    return {"videos": [video], "events": listed}


def videos_of_others(videos: Mapping[Hashable, object], plane: Plane) -> dict[Hashable, str]:
    """Videos of a document that are not this canvas, by id, each with the reason.

    Args:
        videos: names by id. The only one is the canvas, whatever its name.
    """
    if len(videos) < 2:
        return {}
    return {
        key: f"it belongs to another video: {one_line(str(name))[:60]}"
        for key, name in videos.items()
        if not name_is_of(name, plane)
    }


def event_read(
    raw: object, categories: Mapping[Any, str], unread_videos: Mapping[Hashable, str]
) -> EventFeature | Problem:
    """An entry of ``events``; without a name it has that of its category.

    Args:
        unread_videos: videos that are not read, with a reason.
    """
    if not isinstance(raw, Mapping):
        return Problem("not an event")
    category, video = raw.get("category_id"), raw.get("video_id")
    label_name = categories.get(category, "") if isinstance(category, int | str) else ""
    name = one_line(str(raw.get("name") or label_name))
    shape = feature_description("Event", name)
    if isinstance(video, int | str) and video in unread_videos:
        return Problem(unread_videos[video], shape)
    first = raw.get("first_frame")
    last = raw.get("last_frame", first)
    if not _is_frame(first) or not _is_frame(last):
        return Problem("its first_frame and last_frame are not frames, counted from 0", shape)
    note = raw.get("note")
    return EventFeature(
        id=_own_id(raw.get("attributes")),
        name=name,
        note=note if isinstance(note, str) else "",
        first_index=first,
        last_index=last,
    )


def _is_frame(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _own_id(attributes: object) -> uuid.UUID | None:
    try:
        return uuid.UUID(str(attributes.get("id"))) if isinstance(attributes, Mapping) else None
    except ValueError:
        return None
