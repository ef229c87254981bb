"""Whether a value is one that the schema describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

SPARSE = "#/components/schemas/Sparse"


def schema_errors(document: dict[str, Any], schema: Any, value: Any) -> Iterator[str]:
    """What of the value the schema does not allow."""
    whole = {"$ref": "#/$defs/asked", "$defs": {"asked": schema}, **document}
    return (str(one)[:300] for one in Draft202012Validator(whole).iter_errors(value))


def whole_only(schema: Any) -> Any:
    """A schema, or a whole document, without what `fields` allows: every object has all it must."""
    if isinstance(schema, list):
        return [whole_only(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    choices = schema.get("anyOf", [])
    if choices and choices[-1].get("$ref", "").startswith(SPARSE):
        return whole_only(choices[0])
    return {name: whole_only(value) for name, value in schema.items()}
