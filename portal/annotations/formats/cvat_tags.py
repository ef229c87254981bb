"""Tags of CVAT's frames as events of a video, and back.

A tag of CVAT names one frame. An event becomes a tag on each of its frames, and tags alike on
frames that follow each other become one event. CVAT's documents for video have no tags, but its
reader takes images with tags from any document, next to tracks.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from portal.annotations.formats.types import FormatError
from portal.annotations.formats.xml import attribute, text
from portal.annotations.models import VideoEvent
from portal.annotations.qupath import EventFeature, one_line

EVENT_KEY, NOTE_KEY = "tessera.event", "tessera.note"
MAX_TAGS = 1_000_000  # of a document: their frames are held in memory, some 100 MB
_MAX_ATTRIBUTES = 50  # of one tag: a person wrote them, not a program


class FrameTags:
    """Tags of the frames of a document, in any order."""

    def __init__(self) -> None:
        self._frames: defaultdict[tuple[str, str, str], set[int]] = defaultdict(set)
        self._notes: dict[str, str] = {}
        self._count = 0

    def add(self, tag: Any, frame: int) -> None:
        """Add a tag; ``FormatError`` if there are too many."""
        self._count += 1
        if self._count > MAX_TAGS:
            raise FormatError(f"CVAT: more than {MAX_TAGS:,} tags.")
        attributes = {
            one_line(attribute.get("name", ""))[:60]: (attribute.text or "").strip()
            for attribute in list(tag.iter("attribute"))[:_MAX_ATTRIBUTES]
        }
        own_id, note = attributes.pop(EVENT_KEY, ""), attributes.pop(NOTE_KEY, "")
        if own_id and note:
            self._notes[own_id] = note
        attribute_lines = "\n".join(
            f"{name}: {value}" for name, value in attributes.items() if value
        )
        words = "" if own_id else "\n".join(filter(None, (note, attribute_lines)))
        self._frames[own_id, one_line(tag.get("label", "")), words].add(frame)

    def events(self) -> list[EventFeature]:
        """An event for each run of frames that are tagged alike, by their first frame."""
        events = []
        for (own_id, name, words), frames in self._frames.items():
            runs = list(_runs(frames))
            id = _uuid(own_id) if len(runs) == 1 else None
            note = self._notes.get(own_id, words)
            events += [EventFeature(id, name, note, first, last) for first, last in runs]
        return sorted(events, key=lambda event: (event.first_index, event.last_index, event.name))


def _runs(frames: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last frame of each run without a gap."""
    first = last = -1
    for frame in sorted(frames):
        if frame != last + 1 or last < 0:
            if last >= 0:
                yield first, last
            first = frame
        last = frame
    if last >= 0:
        yield first, last


def _uuid(value: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(value)
    except ValueError:
        return None


def frame_tags(events: Iterable[VideoEvent]) -> Iterator[tuple[int, str]]:
    """Frames with the tags of the events that they are part of; the first one has the note.

    Args:
        events: by their first frame.
    """
    later = deque(events)
    current: list[VideoEvent] = []
    frame = 0
    while later or current:
        frame = frame if current else later[0].first_index
        while later and later[0].first_index <= frame:
            current.append(later.popleft())
        yield frame, "".join(_tag(event, frame) for event in current)
        frame += 1
        current = [event for event in current if event.last_index >= frame]


def _tag(event: VideoEvent, frame: int) -> str:
    attributes = {EVENT_KEY: str(event.pk)}
    if event.note and frame == event.first_index:
        attributes[NOTE_KEY] = event.note
    inner = "".join(
        f'<attribute name="{key}">{text(value)}</attribute>' for key, value in attributes.items()
    )
    return f'<tag label={attribute(event.name)} source="manual">{inner}</tag>\n'
