"""From the portal's JSON to the values of ``things`` and ``answers``."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def made(kind: type[T], said: Any) -> T:
    """A value of ``kind`` from JSON: nested values, tuples and times included.

    Raises:
        TypeError: a field is missing; this client does not fit the version of the portal.
    """
    values = {}
    for name, hint, needed in _fields(kind):  # type: ignore[arg-type]
        if name in said:
            values[name] = _value(hint, said[name])
        elif needed:
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
    return made(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value
