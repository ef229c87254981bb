"""Texts that name erased data: jobs, events, messages; and deleted rows in database files."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress

from django.apps import apps
from django.db import DatabaseError, connection, models
from django.db.models.functions import Cast

from portal.core.api.idempotency import responses_forget
from portal.core.models import Event
from portal.erasure.models import Erasure
from portal.erasure.services.inventory import MIN_WORD_LENGTH, Inventory
from portal.jobs.models import Job
from portal.webhooks.models import WebhookDelivery

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHUNK = 2000  # rows, to limit memory and the size of statements
_NUMBERS = {
    "annotations.Roi.geometry",
    "annotations.RoiRevision.geometry",
    "archive.Canvas.levels",
    "mosaics.MosaicFrame.H_mosaic_from_frame",
    "mosaics.MosaicFrame.covariance",
    "mosaics.MosaicFrame.mesh",
    "embeddings.CanvasStain.estimate",
    "search.Query.geometry",
}
"""Columns with millions of numbers, which hold no words of a patient."""


def texts_delete(inventory: Inventory, *, lab_id: uuid.UUID) -> dict[str, int]:
    """Delete jobs, events and messages that name erased data; return the number of each.

    They are searched for ids in all labs, since a case may have been shared, and for names in its
    own lab. All idempotency records are emptied, as their content cannot be searched.

    Call inside the transaction of the erasure.
    """
    ids, words = inventory.ids, _words_to_search(inventory.words)
    responses_forget()
    deleted = {}
    for model in (WebhookDelivery, Job, Event):  # attempts go with their deliveries
        names = ["pk", "lab_id", *_names_searched(model)]
        rows = model._base_manager.order_by().values_list(*names).iterator(chunk_size=_CHUNK)
        row_ids = [
            pk
            for pk, of, *values in rows
            if _names_erased("\n".join(_texts(values)), ids, words if of == lab_id else [])
        ]
        deleted[str(model._meta.model_name)] = _delete(model, row_ids)
    return deleted


def _names_erased(text: str, ids: Set[str], words: Iterable[str]) -> bool:
    return not ids.isdisjoint(_ID.findall(text)) or any(word in text for word in words)


def _names_searched(model: type[models.Model]) -> list[str]:
    """Columns of texts and ids: a job has the id of its target."""
    ids = [
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, models.UUIDField) and not field.primary_key
    ]
    return [*ids, *(field.name for field in _text_fields(model))]


def _texts(value: object) -> Iterator[str]:
    """Texts within a column's value, decoded; a text may be JSON itself."""
    if isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)
    elif value is not None:
        text = str(value)
        yield text
        if text.startswith(("{", "[")):
            with suppress(ValueError, RecursionError):
                yield from _texts(json.loads(text))


def words_left(inventory: Inventory) -> list[str]:
    """Columns that still contain one of the words, as ``table.column``."""
    words = {form for word in _words_to_search(inventory.words) for form in _forms(word)}
    columns = []
    for model in apps.get_models():
        names = [field.name for field in _text_fields(model)]
        for name in names if words else ():
            if (model, name) == (Erasure, "inventory"):  # emptied once all is gone
                continue
            rows = model._base_manager.order_by().annotate(searched=Cast(name, models.TextField()))
            query = models.Q()
            for word in sorted(words):
                query |= models.Q(searched__contains=word)
            if rows.filter(query).exists():
                columns.append(f"{model._meta.db_table}.{name}")
    return columns


def _forms(word: str) -> set[str]:
    """Spellings of a word in a column: plain, or in JSON with or without escapes."""
    return {word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1]}


def database_rewrite() -> bool:
    """Rewrite the database to remove deleted data from its free pages.

    Returns False if other connections prevented it.
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


def _words_to_search(words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if len(word) >= MIN_WORD_LENGTH)


def _text_fields(model: type[models.Model]) -> Iterator[models.Field[object, object]]:
    kinds = (models.CharField, models.TextField, models.JSONField)
    for field in model._meta.concrete_fields:
        if isinstance(field, kinds) and f"{model._meta.label}.{field.name}" not in _NUMBERS:
            yield field


def _delete(model: type[models.Model], ids: list[object]) -> int:
    for start in range(0, len(ids), _CHUNK):
        model._base_manager.filter(pk__in=ids[start : start + _CHUNK]).delete()
    return len(ids)
