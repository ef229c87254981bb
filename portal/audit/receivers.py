"""What the log hears of: events of other apps, sign-ins and sign-outs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from portal.audit.actions import told
from portal.audit.models import AuditEntry
from portal.audit.services import entries_for, entry_note, keyed_hash, labs_of
from portal.core.database.rows import rows_insert
from portal.core.events import EVERY, subscribe_batches
from portal.core.models import Event
from portal.labs.models import User


def listen() -> None:
    """Subscribe; called once, when the app is ready."""
    subscribe_batches(EVERY)(events_heard)
    user_logged_in.connect(_signed_in, dispatch_uid="audit.signed_in")
    user_logged_out.connect(_signed_out, dispatch_uid="audit.signed_out")
    user_login_failed.connect(_sign_in_failed, dispatch_uid="audit.sign_in_failed")


def events_heard(events: Sequence[Event]) -> None:
    """Note writes in the transaction that makes them: neither is there without the other."""
    entries = [entry for event in events for entry in _entries(event)]
    rows_insert(entries)


def _entries(event: Event) -> list[AuditEntry]:
    how = told(event.name)
    if how is None:
        return []
    payload: Mapping[str, Any] = event.payload
    labs = [event.lab_id] if event.lab_id else []
    if not labs and how.of_person:
        labs = labs_of(uuid.UUID(payload[how.of_person]))
    return entries_for(
        event.name,
        lab_ids=labs,
        kind=how.kind,
        object_id=_id(payload.get(how.key)),
        case_id=_id(payload.get("case_id")),
        actor_id=_id(payload.get("by") or payload.get("user_id") or payload.get("user")),
        details={key: payload[key] for key in how.details if payload.get(key) is not None},
    )


def _signed_in(request: HttpRequest | None, user: User, **_: Any) -> None:
    entry_note("account.signed_in", lab_ids=labs_of(user.pk), actor_id=user.pk)


def _signed_out(request: HttpRequest | None, user: User | None, **_: Any) -> None:
    if user is not None:
        entry_note("account.signed_out", lab_ids=labs_of(user.pk), actor_id=user.pk)


def _sign_in_failed(credentials: Mapping[str, Any], **_: Any) -> None:
    """To the labs of the account that was tried; of an unknown address only its hash is kept."""
    address = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    user = User.objects.filter(email=address).first() if address else None
    entry_note(
        "account.sign_in_failed",
        lab_ids=labs_of(user.pk) if user else [],
        kind="member" if user else "",
        object_id=user.pk if user else None,
        details={} if user else {"address": keyed_hash(address)},
    )


def _id(text: Any) -> uuid.UUID | None:
    return uuid.UUID(str(text)) if text else None
