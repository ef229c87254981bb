"""Types of events that webhooks can receive, and their messages.

A message holds ids, types, numbers, states and times, but no names and no text typed by a user, so
nothing about a patient. Receivers read more through the API, by the link.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse

PING = "webhook.ping"


@dataclass(frozen=True, slots=True)
class EventType:
    """Conversion of an event to a message.

    Attributes:
        title: Name for people.
        key: Payload key of the object's id.
        ids: Further payload keys with ids.
        plain: Payload keys with states, numbers and fixed words.
    """

    title: str
    kind: str
    key: str
    ids: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


_ROI = ("canvas_id", "case_id")
_MOSAIC = ("video_id", "case_id", "canvas_id")
_WORK = ("canvas_id", "case_id", "person", "study")
_TRASH = ("target_id", "case_id")
TYPES: Mapping[str, EventType] = {
    "assignment.made": EventType("An image was assigned", "assignment", "assignment_id", _WORK),
    "assignment.submitted": EventType(
        "An image was handed in", "assignment", "assignment_id", _WORK
    ),
    "trash.put": EventType("Something was deleted", "trash", "entry_id", _TRASH, ("kind",)),
    "trash.restored": EventType("Something was restored", "trash", "entry_id", _TRASH, ("kind",)),
    "canvas.display_range_set": EventType(
        "A display range was set", "canvas", "canvas_id", ("case_id",), ("low", "high")
    ),
    "canvas.modality_set": EventType(
        "A modality was set", "canvas", "canvas_id", ("case_id",), ("modality",)
    ),
    "canvas.scaled": EventType(
        "A pixel size was set", "canvas", "canvas_id", ("case_id",), ("mpp_x", "mpp_y")
    ),
    "case.changed": EventType("A case was changed", "case", "case_id"),
    "case.created": EventType("A case was created", "case", "case_id"),
    "case.modality_set": EventType(
        "The modality of a case was set", "case", "case_id", (), ("modality",)
    ),
    "followup.finished": EventType(
        "A follow-up was found", "followup", "followup_id", ("roi_id",), ("found",)
    ),
    "job.ended": EventType(
        "A job ended", "job", "job_id", ("target_id",), ("kind", "state", "error_code")
    ),
    "mosaic.failed": EventType(
        "A mosaic could not be built", "mosaic", "mosaic_id", _MOSAIC, ("error_code",)
    ),
    "mosaic.finished": EventType("A mosaic is ready", "mosaic", "mosaic_id", _MOSAIC),
    "roi.commented": EventType("A region was commented on", "roi", "roi_id", _ROI, ("version",)),
    "roi.deleted": EventType("A region was deleted", "roi", "roi_id", _ROI, ("version",)),
    "roi.saved": EventType("A region was saved", "roi", "roi_id", _ROI, ("version", "action")),
    "rois.saved_in_bulk": EventType("Many regions were saved on an image", "canvas", "canvas_id"),
    "share.accepted": EventType("A shared case was accepted", "share", "share_id", ("case_id",)),
    "share.ended": EventType("The sharing of a case ended", "share", "share_id", ("case_id",)),
    "share.offered": EventType("A case was offered", "share", "share_id", ("case_id",)),
    "slide.ready": EventType("A slide is ready", "slide", "slide_id", ("case_id", "canvas_id")),
    "slide.stained": EventType("A stain was set", "slide", "slide_id", ("case_id",)),
    "study.completed": EventType(
        "All readings of a study are in", "study", "study_id", (), ("readings",)
    ),
    "study.unblinded": EventType("A study was unblinded", "study", "study_id"),
    "video.ready": EventType("A video is ready", "video", "video_id", ("case_id", "canvas_id")),
}


def waits(name: str, payload: Mapping[str, Any]) -> bool:
    """Return whether an event is sent: of ROIs saved in bulk, only their joint event is."""
    return name in TYPES and not payload.get("is_bulk")


def message_of(name: str, payload: Mapping[str, Any], *, lab_id: Any, at: datetime) -> str:
    """Body of an event's message, as signed and sent."""
    kind = TYPES[name]
    data: dict[str, Any] = {"lab": str(lab_id), "object": kind.kind, "id": payload.get(kind.key)}
    data |= {key.removesuffix("_id"): payload.get(key) for key in kind.ids if payload.get(key)}
    data |= {key: payload[key] for key in kind.plain if payload.get(key) not in {None, ""}}
    return _body(name, data | {"link": _link(kind.kind, payload.get(kind.key))}, at=at)


def ping_of(webhook_id: Any, *, lab_id: Any, at: datetime) -> str:
    """Body of a test message."""
    data = {"lab": str(lab_id), "object": "webhook", "id": str(webhook_id)}
    return _body(PING, data | {"link": _link("webhook", webhook_id)}, at=at)


def _body(name: str, data: Mapping[str, Any], *, at: datetime) -> str:
    return json.dumps({"type": name, "timestamp": at.isoformat(), "data": data})


def _link(kind: str, object_id: Any) -> str | None:
    """API URL of the object; None if it has none."""
    try:
        return str(settings.TESSERA_URL) + reverse(f"api:{kind}-detail", args=[object_id])
    except NoReverseMatch:
        return None
