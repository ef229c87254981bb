"""Events by which lower apps notify higher ones without importing them.

Each app that emits events names them in its module ``events``, and each app that is notified has
its handlers in its module ``subscribers``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction

from portal.core.database.rows import rows_insert
from portal.core.models import Event
from portal.core.registry import Registry

EVERY = "*"
Handler = Callable[[Event], None]
BatchHandler = Callable[[Sequence[Event]], None]
Waits = Callable[[str, Mapping[str, Any]], bool]

HANDLERS: Registry[str, Handler] = Registry()
"""Handlers by name of the event or ``EVERY``, called in the emitter's transaction. They submit jobs
or write rows and must be quick."""
BATCH_HANDLERS: Registry[str, BatchHandler] = Registry()
"""Handlers called once with all events that are emitted in one batch, see ``HANDLERS``."""
OUTBOX: Registry[str, Waits] = Registry()
"""Predicates of name and payload that decide whether an event waits in the outbox. They must not
query the database."""
subscribe = HANDLERS.register
subscribe_batches = BATCH_HANDLERS.register


def event_emit(name: str, *, lab_id: uuid.UUID | None, payload: Mapping[str, Any]) -> Event:
    """Write an event row and call its subscribers, all in the caller's transaction.

    Args:
        name: dotted, subject first; of the emitting app's ``events`` where others subscribe to it.
        payload: JSON-able; ids as strings.
    """
    with transaction.atomic():
        event = _event(name, lab_id, payload)
        event.save(force_insert=True)
        _notify(name, [event])
    return event


def events_emit(
    name: str, *, lab_id: uuid.UUID | None, payloads: Sequence[Mapping[str, Any]]
) -> None:
    """``event_emit`` for each payload, with one insert for all rows.

    Subscribers are given the events without their ids, which the database assigns.
    """
    events = [_event(name, lab_id, payload) for payload in payloads]
    with transaction.atomic():
        rows_insert(events)
        _notify(name, events)


def _event(name: str, lab_id: uuid.UUID | None, payload: Mapping[str, Any]) -> Event:
    waits = any(ask(name, payload) for _, ask in OUTBOX.items())
    return Event(name=name, lab_id=lab_id, payload=dict(payload), is_waiting=waits)


def _notify(name: str, events: Sequence[Event]) -> None:
    for event in events:
        for handler in (*HANDLERS.all(name), *HANDLERS.all(EVERY)):
            handler(event)
    if events:
        for batch_handler in (*BATCH_HANDLERS.all(name), *BATCH_HANDLERS.all(EVERY)):
            batch_handler(events)
