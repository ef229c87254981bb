"""Texts about what was erased: jobs, events; and what a database keeps of deleted rows."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator

from django.apps import apps
from django.db import DatabaseError, connection, models
from django.db.models.functions import Cast

from portal.core.api.answers import answers_forget
from portal.core.models import Event
from portal.hooks.models import WebhookDelivery
from portal.jobs.models import Job
from portal.keeping.services.erasing.inventory import WORD_LEAST, Inventory

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHUNK = 2000  # rows at a time: memory stays small, and so do the statements
_LARGE = (
    "geometry",
    "foreign",
    "levels",
    "covariance",
    "H_mosaic_from_frame",
    "mesh",
    "estimate",
    "result",
)
"""Numbers by the million: no words of a patient are in them."""


def texts_delete(inventory: Inventory, *, lab_id: uuid.UUID) -> dict[str, int]:
    """Delete the jobs, events and messages that name what is erased; returns how many of each.

    Kept answers to requests are forgotten: only their senders could search them for the patient.

    Call inside the transaction of the erasure.
    """
    ids, words = inventory.ids, _searched(inventory.words)
    answers_forget()

    def tells(*values: object) -> bool:
        text = json.dumps(values, default=str, ensure_ascii=False)
        return not ids.isdisjoint(_ID.findall(text)) or any(word in text for word in words)

    of_lab = models.Q(lab_id=lab_id)  # sharing is told to the other lab as well
    jobs = (
        pk
        for pk, *values in Job.objects.filter(lab=lab_id)
        .values_list("pk", "args", "target_id", "target_name", "result", "error_message")
        .iterator(chunk_size=_CHUNK)
        if tells(values)
    )
    events = (
        pk
        for pk, payload in Event.objects.filter(of_lab | models.Q(name__startswith="share."))
        .values_list("pk", "payload")
        .iterator(chunk_size=_CHUNK)
        if tells(payload)
    )
    deliveries = (
        pk
        for pk, body in WebhookDelivery.objects.filter(lab=lab_id)
        .values_list("pk", "body")
        .iterator(chunk_size=_CHUNK)
        if tells(body)
    )
    return {
        "webhookdelivery": _delete(WebhookDelivery, list(deliveries)),
        "job": _delete(Job, list(jobs)),
        "event": _delete(Event, list(events)),
    }


def words_left(inventory: Inventory) -> list[str]:
    """Columns in which one of the words still occurs, as ``table.column``."""
    words = _searched(inventory.words)
    found = []
    for model in apps.get_models():
        names = [field.name for field in _text_fields(model)]
        for name in names if words else ():
            rows = model._base_manager.order_by().annotate(searched=Cast(name, models.TextField()))
            query = models.Q()
            for word in words:
                query |= models.Q(searched__contains=word)
            if rows.filter(query).exists():
                found.append(f"{model._meta.db_table}.{name}")
    return found


def database_rewrite() -> bool:
    """Write the database anew without what was deleted: until then its bytes lie in free pages.

    Returns whether that was possible; others at work may keep it from happening now.
    """
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET lock_timeout = '20s'")  # not LOCAL: no transaction may VACUUM
                try:
                    for model in apps.get_models():
                        table = connection.ops.quote_name(model._meta.db_table)
                        cursor.execute(f"VACUUM FULL {table}")
                finally:
                    cursor.execute("RESET lock_timeout")
                return True
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return int(cursor.fetchone()[0]) == 0
    except DatabaseError:
        return False


def _searched(words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if len(word) >= WORD_LEAST)


def _text_fields(model: type[models.Model]) -> Iterator[models.Field[object, object]]:
    kinds = (models.CharField, models.TextField, models.JSONField)
    for field in model._meta.concrete_fields:
        if isinstance(field, kinds) and field.name not in _LARGE:
            yield field


def _delete(model: type[models.Model], ids: list[object]) -> int:
    for start in range(0, len(ids), _CHUNK):
        model._base_manager.filter(pk__in=ids[start : start + _CHUNK]).delete()
    return len(ids)
