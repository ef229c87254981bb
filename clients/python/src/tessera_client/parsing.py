"""Conversion of the portal's JSON to the classes of ``models`` and ``results``."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def parse(kind: type[T], data: Any) -> T:
    """Convert JSON to a value of ``kind``, including nested values, tuples and times.

    Raises:
        TypeError: a field is missing; this client does not fit the version of the portal.
    """
    values = {}
    for name, hint, is_required in _fields(kind):  # type: ignore[arg-type]
        if name in data:
            values[name] = _value(hint, data[name])
        elif is_required:
            raise TypeError(f"{kind.__name__}: the portal's answer has no {name}")
    return kind(**values)


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    hints = get_type_hints(kind)
    return tuple((f.name, hints[f.name], f.default is MISSING) for f in fields(kind))


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(hint, UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], one) for one in value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    return parse(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value
