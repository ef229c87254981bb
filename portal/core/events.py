"""Lower apps tell higher ones what happened without importing them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction

from portal.core.database.rows import rows_insert
from portal.core.models import Event
from portal.core.reserved import effect_note

EVERY = "*"
Handler = Callable[[Event], None]
BatchHandler = Callable[[Sequence[Event]], None]
_HANDLERS: defaultdict[str, list[Handler]] = defaultdict(list)
_BATCH_HANDLERS: defaultdict[str, list[BatchHandler]] = defaultdict(list)
Waits = Callable[[str, Mapping[str, Any]], bool]
_OUTBOX: list[Waits] = []


def outbox_register(waits: Waits) -> None:
    """Let events wait in the outbox where ``waits`` is true of their name and payload.

    Call from ``AppConfig.ready``. ``waits`` must not query the database: emitting stays quick.
    """
    if waits not in _OUTBOX:
        _OUTBOX.append(waits)


def subscribe(name: str) -> Callable[[Handler], Handler]:
    """Call the decorated function in the emitter's own transaction, with the event row.

    A subscriber to ``EVERY`` hears of every event.

    Register from ``AppConfig.ready``. A handler submits jobs or writes rows; it must be quick.
    """

    def register(handler: Handler) -> Handler:
        if handler not in _HANDLERS[name]:
            _HANDLERS[name].append(handler)
        return handler

    return register


def subscribe_batches(name: str) -> Callable[[BatchHandler], BatchHandler]:
    """As ``subscribe``, for what is done once for all events that are emitted together."""

    def register(handler: BatchHandler) -> BatchHandler:
        if handler not in _BATCH_HANDLERS[name]:
            _BATCH_HANDLERS[name].append(handler)
        return handler

    return register


def event_emit(name: str, *, lab_id: uuid.UUID | None, payload: Mapping[str, Any]) -> Event:
    """Write an event row and call its subscribers, all in the caller's transaction.

    Args:
        name: dotted, subject first: ``roi.saved``, ``mosaic.finished``.
        payload: JSON-able; ids as strings.
    """
    with transaction.atomic():
        effect_note()
        event = _event(name, lab_id, payload)
        event.save(force_insert=True)
        _tell(name, [event])
    return event


def events_emit(
    name: str, *, lab_id: uuid.UUID | None, payloads: Sequence[Mapping[str, Any]]
) -> None:
    """``event_emit`` for each payload, with one insert for all rows.

    Subscribers are given the events without their ids, which the database assigns.
    """
    events = [_event(name, lab_id, payload) for payload in payloads]
    with transaction.atomic():
        effect_note()
        rows_insert(events)
        _tell(name, events)


def _event(name: str, lab_id: uuid.UUID | None, payload: Mapping[str, Any]) -> Event:
    waits = any(ask(name, payload) for ask in _OUTBOX)
    return Event(name=name, lab_id=lab_id, payload=dict(payload), is_waiting=waits)


def _tell(name: str, events: Sequence[Event]) -> None:
    for event in events:
        for handler in (*_HANDLERS[name], *_HANDLERS[EVERY]):
            handler(event)
    if events:
        for batch_handler in (*_BATCH_HANDLERS[name], *_BATCH_HANDLERS[EVERY]):
            batch_handler(events)
