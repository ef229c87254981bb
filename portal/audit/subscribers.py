"""Log entries of other apps' events."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from portal.audit.actions import event_rule
from portal.audit.models import AuditEntry
from portal.audit.services import entries_for, labs_of
from portal.core.database.rows import rows_insert
from portal.core.events import EVERY, subscribe_batches
from portal.core.models import Event


@subscribe_batches(EVERY)
def log_events(events: Sequence[Event]) -> None:
    """Log events in the transaction of their write, so that neither exists without the other."""
    entries = [entry for event in events for entry in _entries(event)]
    rows_insert(entries)


def _entries(event: Event) -> list[AuditEntry]:
    rule = event_rule(event.name)
    if rule is None:
        return []
    payload: Mapping[str, Any] = event.payload
    if rule.unless and payload.get(rule.unless):
        return []
    labs = [event.lab_id] if event.lab_id else []
    if not labs and rule.of_person:
        labs = labs_of(uuid.UUID(payload[rule.of_person]))
    return entries_for(
        event.name,
        lab_ids=labs,
        kind=rule.kind,
        object_id=_id(payload.get(rule.key)),
        case_id=_id(payload.get("case_id")),
        actor_id=_id(payload.get("by") or payload.get("user_id") or payload.get("user")),
        details={key: payload[key] for key in rule.details if payload.get(key) is not None},
    )


def _id(text: Any) -> uuid.UUID | None:
    return uuid.UUID(str(text)) if text else None
