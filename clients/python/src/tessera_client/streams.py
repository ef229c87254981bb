"""Parsing of server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

AGAIN_S = 2.0  # if an answer does not say when to ask again


@dataclass(frozen=True, slots=True)
class Happened:
    """An event. ``id``: to continue from; ``data``: ids, states and numbers of what changed."""

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stretch:
    """One answer: its events, the id to continue from, and when to ask again."""

    events: Sequence[Happened]
    last_id: str | None
    retry_s: float


def stream_read(text: str) -> Stretch:
    """Parse an answer (HTML standard, 9.2.6); a block without data only sets the last id."""
    events: list[Happened] = []
    last_id: str | None = None
    retry_s = AGAIN_S
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(_field(line) for line in block.split("\n") if line[:1] not in ("", ":"))
        last_id = fields.get("id", last_id)
        if fields.get("retry", "").isdecimal():
            retry_s = int(fields["retry"]) / 1000
        if "data" in fields:
            said = json.loads(fields["data"])
            at = datetime.fromisoformat(said["timestamp"])
            events.append(Happened(last_id or "", said["type"], at, said["data"]))
    return Stretch(tuple(events), last_id, retry_s)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")
