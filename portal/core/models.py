"""Base model, events and idempotency records."""

from __future__ import annotations

import json
import uuid
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac


class BaseModel(models.Model):
    """Base of models with a UUID as the primary key and two timestamps.

    Attributes:
        edited: Names of the fields that people edit; see ``edit_tag``.
    """

    edited: ClassVar[tuple[str, ...]] = ()

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


def edit_tag(row: BaseModel) -> str:
    """Short hash of the editable fields of a row.

    It is computed from the values, so no write can miss updating it, and with the secret key, so
    it does not reveal hidden fields.
    """
    values = [getattr(row, name) for name in type(row).edited]
    key = getattr(row, "lab_id", None) if row._state.adding else row.pk
    text = json.dumps([type(row).__name__, key, values], sort_keys=True, default=str)
    return salted_hmac("edit tag", text, algorithm="sha256").hexdigest()[:16]


class Event(models.Model):
    """Event, written in the transaction of the change that it reports.

    Subscribers are called in the same transaction (``portal.core.events``); the rows remain as a
    record. ``is_waiting``: in the outbox, not yet delivered to other systems.
    """

    name = models.CharField(max_length=80)
    lab_id = models.UUIDField(null=True, db_index=True)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    is_waiting = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        indexes = (
            models.Index(fields=["id"], condition=models.Q(is_waiting=True), name="event_outbox"),
        )


class IdempotencyRecord(models.Model):
    """Write with an ``Idempotency-Key`` and its response, which a repeated request receives.

    ``id`` is a hash of person, token, path and key. ``body`` is encrypted under the key, which is
    not stored, because responses can contain secrets and patients' names.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    person_id = models.UUIDField(db_index=True)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, help_text="null until it is answered")
    headers = models.JSONField(default=dict)
    body = models.TextField(blank=True)
    is_stored = models.BooleanField(
        default=True, help_text="False: the answer was too large, or was forgotten since"
    )
    lease_token = models.UUIDField(null=True, help_text="Set while work under a lease goes on")
    lease_until = models.DateTimeField(null=True)
    has_effect = models.BooleanField(default=False, help_text="Work under a lease wrote something")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
