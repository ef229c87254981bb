"""Writes of the events of a video: each change is a version, and a deletion can be undone."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from django.utils import timezone

from portal.annotations.events import VideoEventChange
from portal.annotations.models import RoiAction, RoiImport, VideoEvent, VideoEventRevision
from portal.annotations.properties import description_clean
from portal.annotations.rules import require_annotate
from portal.annotations.selectors.frames import frame_resolve
from portal.annotations.services.versions import Versions
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.core.events import event_emit
from portal.core.text import name_clean, name_key
from portal.labs.models import User

MAX_NAME_CHARS = 80  # as the column
_STATE = ("name", "note", "first_index", "last_index")
EVENTS = Versions(
    VideoEvent,
    "event",
    "event-deleted",
    fields=("name_key", "first_pts", "last_pts", *_STATE),
    state=_STATE,
    place=("canvas_id",),
)


class VideoEventChanges(TypedDict, total=False):
    """Editable fields; omitted ones keep their values."""

    name: str
    note: str
    first_index: int
    last_index: int


@dataclass(frozen=True, slots=True)
class VideoEventSaved:
    """An event after a write; ``created`` is False if the same event was there already."""

    event: VideoEvent
    created: bool


def video_event_create(
    *,
    canvas: Canvas,
    user: User,
    name: str,
    first_index: int,
    last_index: int | None = None,
    note: str = "",
    event_id: uuid.UUID | None = None,
) -> VideoEventSaved:
    """Add an event to a video; emits ``video_event.saved``.

    ``event_id`` may be chosen by the client, so that a save whose answer was lost can be sent
    again: the same id with the same content returns the event that is there.

    Args:
        last_index: None for a moment, whose last frame is its first.

    Raises:
        ForbiddenError, InvalidInputError.
        ConflictError: the id is taken by something else.
    """
    require_annotate(user, canvas.lab_id)
    last = first_index if last_index is None else last_index
    changes: VideoEventChanges = {
        "name": name,
        "note": note,
        "first_index": first_index,
        "last_index": last,
    }
    event = video_event_prepare(canvas=canvas, user=user, changes=changes)
    event.pk = event_id or event.pk
    record = partial(_record, event, RoiAction.CREATE, user)
    saved = EVENTS.insert_once(event, record, can_exist=event_id is not None)
    return VideoEventSaved(saved, created=saved is event)


def video_event_prepare(*, canvas: Canvas, user: User, changes: VideoEventChanges) -> VideoEvent:
    """A new event, checked: nothing is written, rights are the caller's matter.

    Raises:
        InvalidInputError: it cannot be stored.
    """
    if canvas.kind != CanvasKind.VIDEO:
        raise InvalidInputError("canvas: only a video has events; this is an image.")
    event = VideoEvent(lab_id=canvas.lab_id, canvas=canvas, created_by=user)
    for field, value in changed_event_fields(event, changes).items():
        setattr(event, field, value)
    return event


def video_event_import(*, event: VideoEvent, roi_import: RoiImport, user: User) -> None:
    """Write a prepared event of an import; emits ``video_event.saved``."""
    record = partial(_record, event, RoiAction.CREATE, user, roi_import)
    EVENTS.insert_once(event, record, can_exist=False)


def video_event_update(
    *,
    event: VideoEvent,
    user: User,
    expected_version: int,
    changes: VideoEventChanges,
    roi_import: RoiImport | None = None,
) -> VideoEvent:
    """Change an event whose version is still ``expected_version``; emits ``video_event.saved``.

    Raises:
        StaleVersionError: someone else changed it first; ``details["current_version"]``.
        ConflictError: it is deleted.
        ForbiddenError, InvalidInputError.
    """
    require_annotate(user, event.lab_id)
    with EVENTS.locked(event, expected_version):
        EVENTS.require_live(event)
        _change(event, changed_event_fields(event, changes), RoiAction.UPDATE, user, roi_import)
    return event


def video_event_delete(*, event: VideoEvent, user: User, expected_version: int) -> VideoEvent:
    """Delete an event (``video_event_restore`` undoes it); emits ``video_event.deleted``.

    Raises:
        StaleVersionError, ForbiddenError.
    """
    require_annotate(user, event.lab_id)
    with EVENTS.locked(event, expected_version):
        if event.deleted_at is None:
            _change(event, {"deleted_at": timezone.now()}, RoiAction.DELETE, user)
    return event


def video_event_restore(
    *,
    event: VideoEvent,
    user: User,
    expected_version: int | None = None,
    roi_import: RoiImport | None = None,
) -> VideoEvent:
    """Undo a deletion; an event that is live stays as it is. Emits ``video_event.saved``.

    Raises:
        StaleVersionError, ForbiddenError.
    """
    require_annotate(user, event.lab_id)
    with EVENTS.locked(event, expected_version):
        if event.deleted_at is not None:
            _change(event, {"deleted_at": None}, RoiAction.RESTORE, user, roi_import)
    return event


def video_events_import_undo(
    *, roi_import: RoiImport, ids: Collection[uuid.UUID], user: User | None
) -> Counter[str]:
    """Undo the changes of an import to events that were not changed since.

    Args:
        user: None for an account that is gone.

    Returns:
        Counts of ``removed``, ``reverted`` and ``skipped``.
    """
    count: Counter[str] = Counter()
    for event in VideoEvent.objects.select_for_update().filter(pk__in=ids).order_by("pk"):
        event.canvas = roi_import.canvas
        revisions = list(event.revisions.filter(roi_import=roi_import))
        if event.version != revisions[-1].version:
            count["skipped"] += 1
            continue
        was = event.revisions.filter(version=revisions[0].version - 1).values(*_STATE).first()
        before: VideoEventChanges = {**was} if was else {}  # type: ignore[typeddict-item]
        try:
            fields = changed_event_fields(event, before)
        except PortalError:
            count["skipped"] += 1  # the earlier state is no longer valid
            continue
        action = RoiAction.UPDATE
        if revisions[0].action != RoiAction.UPDATE:
            action, fields["deleted_at"] = RoiAction.DELETE, timezone.now()
        _change(event, fields, action, user)
        count["reverted" if action == RoiAction.UPDATE else "removed"] += 1
    return count


def changed_event_fields(event: VideoEvent, changes: VideoEventChanges) -> dict[str, object]:
    """The columns that differ; frames with their presentation times.

    Raises:
        InvalidInputError: a change that cannot be stored.
    """
    fields: dict[str, object] = {}
    if "name" in changes:
        fields["name"] = name = _name(changes["name"])
        fields["name_key"] = name_key(name)
    if "note" in changes:
        fields["note"] = description_clean(changes["note"])
    first = changes.get("first_index", event.first_index)
    last = changes.get("last_index", event.last_index)
    if last < first:
        raise InvalidInputError(
            f"last_index: frame {last} is before the first frame of the event, {first}."
        )
    if (first, last) != (event.first_index, event.last_index):
        for end, index in (("first", first), ("last", last)):
            if frame := frame_resolve(event.canvas, index=index, pts=None):
                fields |= {f"{end}_index": frame.index, f"{end}_pts": frame.pts}
    return {field: value for field, value in fields.items() if value != getattr(event, field)}


def _name(text: str) -> str:
    name = name_clean(text)
    if not name:
        raise InvalidInputError("name: an event needs a name, such as Caecum.")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInputError(f"name: {len(name)} characters; {MAX_NAME_CHARS} at most.")
    return name


def _change(
    event: VideoEvent,
    fields: Mapping[str, object],
    action: RoiAction,
    user: User | None,
    roi_import: RoiImport | None = None,
) -> None:
    """Write the fields, if there are any, with their revision and event."""
    if fields:
        EVENTS.write(event, fields)
        _record(event, action, user, roi_import)


def _record(
    event: VideoEvent, action: RoiAction, user: User | None, roi_import: RoiImport | None = None
) -> None:
    """Write the revision of a change that was just made, and emit its event."""
    state = {field: getattr(event, field) for field in _STATE}
    VideoEventRevision.objects.create(
        event=event,
        version=event.version,
        action=action,
        author=user,
        roi_import=roi_import,
        **state,
    )
    deleted = action == RoiAction.DELETE
    event_emit(
        VideoEventChange.DELETED if deleted else VideoEventChange.SAVED,
        lab_id=event.lab_id,
        payload={
            "video_event_id": str(event.pk),
            "canvas_id": str(event.canvas_id),
            "case_id": str(event.canvas.case_id),
            "version": event.version,
            "action": action.value,
            "user_id": str(user.pk) if user else None,
        },
    )
