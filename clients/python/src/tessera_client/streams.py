"""Parsing of server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

DEFAULT_RETRY_S = 2.0  # if an answer states no time


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``id``: to continue from; ``data``: ids, states and numbers of what changed."""

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events of one answer, the id to continue from, and the delay before the next request."""

    events: Sequence[Event]
    last_id: str | None
    retry_s: float


def parse_events(text: str) -> EventBatch:
    """Parse an answer (HTML standard, 9.2.6); a block without data only sets the last id."""
    events: list[Event] = []
    last_id: str | None = None
    retry_s = DEFAULT_RETRY_S
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(_field(line) for line in block.split("\n") if line[:1] not in ("", ":"))
        last_id = fields.get("id", last_id)
        if fields.get("retry", "").isdecimal():
            retry_s = int(fields["retry"]) / 1000
        if "data" in fields:
            message = json.loads(fields["data"])
            at = datetime.fromisoformat(message["timestamp"])
            events.append(Event(last_id or "", message["type"], at, message["data"]))
    return EventBatch(tuple(events), last_id, retry_s)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")
