"""Rows of a crate as model instances, not saved: each column present, of its type, valid."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from portal.interop.rocrate.formats.reader import CrateError, shown

LEFT_OUT = frozenset(
    {
        "search_text",  # of other columns
        "trash_entry_id",
        "roi_import_id",  # a document that is not kept
        "label_merge_id",
    }
)
"""Columns that are not in a crate."""

_Row = TypeVar("_Row", bound=models.Model)


def columns_of(model: type[models.Model]) -> dict[str, models.Field[Any, Any]]:
    """The columns that a crate has of a model, by name."""
    fields = model._meta.concrete_fields
    return {field.attname: field for field in fields if field.attname not in LEFT_OUT}


def row_read(model: type[_Row], values: Mapping[str, Any], where: str) -> _Row:
    """Model instance with the values of a line. The caller checks the objects it refers to.

    Raises:
        CrateError: a column too many or too few, or a value that the column does not take.
    """
    columns = columns_of(model)
    odd = sorted(columns.keys() ^ values.keys())
    if odd:
        problem = "lacks" if odd[0] in columns else "has an unknown"
        raise CrateError(f"{where}: {problem} column {shown(odd[0])}.")
    row = model()
    for name, field in columns.items():
        try:
            setattr(row, name, _value(field, values[name]))
        except (ValidationError, ValueError, TypeError, OverflowError) as error:
            message = error.messages[0] if isinstance(error, ValidationError) else str(error)
            raise CrateError(f"{where}: {name}: {message[:200]}") from error
    return row


def _value(field: models.Field[Any, Any], value: Any) -> Any:
    if isinstance(field, models.ForeignKey):
        field_of = field.target_field
        return None if value is None and field.null else _value(field_of, value)
    if value is None:
        if field.null or isinstance(field, models.AutoField):
            return None
        raise ValueError("it must not be empty")
    if isinstance(field, models.BinaryField):
        return _binary(value)
    if isinstance(field, models.JSONField):
        return _json(field, value)
    if not isinstance(value, _types(field)) or (
        isinstance(value, bool) and not isinstance(field, models.BooleanField)
    ):
        raise TypeError(f"{shown(value)} is of the wrong type")
    parsed = field.to_python(value)
    if isinstance(parsed, float) and not math.isfinite(parsed):
        raise ValueError("it is not a finite number")
    if isinstance(parsed, datetime):
        if timezone.is_naive(parsed):
            raise ValueError("it has no time zone")
        parsed = parsed.astimezone(UTC)
    allowed = {choice for choice, _ in field.flatchoices} | ({""} if field.blank else set())
    if field.choices and parsed not in allowed:
        raise ValueError(f"{shown(value)} is not one of the allowed values")
    field.run_validators(parsed)
    return parsed


def _types(field: models.Field[Any, Any]) -> tuple[type, ...]:
    if isinstance(field, models.BooleanField):
        return (bool,)
    if isinstance(field, models.FloatField):
        return (int, float)
    return (int,) if isinstance(field, models.IntegerField) else (str,)


def _json(field: models.JSONField[Any, Any], value: Any) -> Any:
    """A value of the type of the column's default; any value where there is no default."""
    empty = field.get_default()
    if empty is not None and not isinstance(value, type(empty)):
        raise TypeError(f"expected a JSON {'list' if isinstance(empty, list) else 'object'}")
    return value


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, binascii.Error) as error:
        raise ValueError("expected base64") from error
