"""Base models, events, and answers that are kept. No domain words here."""

from __future__ import annotations

import json
import uuid
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac


class BaseModel(models.Model):
    """A row with a UUID (safe to show in a URL) and its times.

    ``edited`` names the fields that people edit, maybe two at once: see ``edit_tag``.
    """

    edited: ClassVar[tuple[str, ...]] = ()

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


def edit_tag(row: BaseModel) -> str:
    """A short tag of what the edited fields of a row say; it differs after every change of them.

    It is made of the values, so that no write can forget it, and with the installation's key, so
    that nobody learns from it what a hidden field says.
    """
    values = [getattr(row, name) for name in type(row).edited]
    key = getattr(row, "lab_id", None) if row._state.adding else row.pk
    text = json.dumps([type(row).__name__, key, values], sort_keys=True, default=str)
    return salted_hmac("edit tag", text, algorithm="sha256").hexdigest()[:16]


class Event(models.Model):
    """Something that happened, written in the transaction in which it happened.

    Subscribers in the process hear of it at once (``portal.core.events``); the rows stay as the
    record of what was done, by ascending id. ``is_waiting``: still to be told to other systems
    (``events.outbox_register``).
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


class KeptAnswer(models.Model):
    """The answer to a request, for whoever sends it again under the same ``Idempotency-Key``.

    ``name`` is a hash of who asked, where, and the key. ``body`` can be read only with that key,
    which is kept nowhere: answers hold secrets that are shown once, and what patients are known by.
    """

    name = models.CharField(primary_key=True, max_length=64)
    person_id = models.UUIDField(db_index=True)
    digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, help_text="null until it is answered")
    headers = models.JSONField(default=dict)
    body = models.TextField(blank=True)
    is_whole = models.BooleanField(default=True)
    """False: it was too large to be kept, or forgotten since; the request was carried out."""
    holder = models.UUIDField(null=True, help_text="Of one under way: who carries it out")
    held_until = models.DateTimeField(null=True, help_text="From then on another may")
    has_effect = models.BooleanField(
        default=False, help_text="Of one under way: it wrote something"
    )
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
