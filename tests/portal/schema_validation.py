"""Validation of values against the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator


def schema_errors(document: dict[str, Any], schema: Any, value: Any) -> Iterator[str]:
    """Violations of a schema by a value."""
    full = {"$ref": "#/$defs/asked", "$defs": {"asked": schema}, **document}
    return (str(error)[:300] for error in Draft202012Validator(full).iter_errors(value))
