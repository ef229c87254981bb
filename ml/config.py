"""Configurations as frozen dataclasses: read from plain data, unknown keys refused; their hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ml.errors import BadInputError

T = TypeVar("T")

HASH_DIGITS = 16
"""Hexadecimal digits kept of a SHA-256: 64 bits tell any number of configurations apart."""


def config_from_dict(cls: type[T], values: Mapping[str, Any], *, where: str = "config") -> T:
    """A configuration dataclass from plain data; nested dataclasses from nested objects.

    What ``values`` does not name keeps its default.

    Raises:
        BadInputError: an unknown key, or a value of another type than the field's.
    """
    hints = typing.get_type_hints(cls)
    field_names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - field_names)
    if unknown:
        names = ", ".join(sorted(field_names))
        raise BadInputError(f"{where}: unknown key {unknown[0]!r}; known: {names}")
    arguments = {}
    for name, value in values.items():
        arguments[name] = _convert(hints[name], value, f"{where}.{name}")
    return cls(**arguments)


def config_from_json(cls: type[T], text: str, *, where: str = "config") -> T:
    """A configuration from the text of a JSON object.

    Raises:
        BadInputError: not a JSON object, or as ``config_from_dict``.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise BadInputError(f"{where}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise BadInputError(f"{where}: expected an object, got {values!r}")
    return config_from_dict(cls, values, where=where)


def config_from_file(default: T, path: Path | None) -> T:
    """Read a configuration from a JSON file; fields that it lacks are those of ``default``.

    Raises:
        BadInputError: as ``config_from_json``.
        OSError: the file cannot be read.
    """
    if path is None:
        return default
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path.name}: not UTF-8: {error.reason}") from error
    config = config_from_json(type(default), text, where=path.name)
    return _copy_fields(default, config, json.loads(text))


def _copy_fields(default: T, source: T, names: Mapping[str, Any]) -> T:
    """``default`` with the fields of ``source`` that ``names`` has, at any depth."""
    changes = {}
    for name, value in names.items():
        current, new = getattr(default, name), getattr(source, name)
        is_nested = isinstance(value, Mapping) and type(current) is type(new)
        changes[name] = _copy_fields(current, new, value) if is_nested else new
    changed: T = dataclasses.replace(default, **changes)  # type: ignore[type-var]
    return changed


def config_hash(config: Any, *extra: bytes) -> str:
    """16 hexadecimal digits over a configuration (and, if given, the bytes of its weights)."""
    text = json.dumps(dataclasses.asdict(config), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode())
    for data in extra:
        digest.update(data)
    return digest.hexdigest()[:HASH_DIGITS]


def _convert(hint: Any, value: Any, where: str) -> Any:
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind is types.UnionType:  # an optional value: X | None
        return None if value is None else _convert(inner[0], value, where)
    is_config = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    if (is_config or kind is dict) and not isinstance(value, Mapping):
        raise BadInputError(f"{where}: expected an object, got {value!r}")
    if kind in (tuple, list) and not isinstance(value, list | tuple):
        raise BadInputError(f"{where}: expected a list, got {value!r}")
    if is_config:
        return config_from_dict(hint, value, where=where)
    if kind is dict:
        return {name: _convert(inner[1], v, f"{where}.{name}") for name, v in value.items()}
    if kind in (tuple, list):
        items = _converted_items(inner if kind is tuple else (*inner, ...), value, where)
        return items if kind is tuple else list(items)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise BadInputError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value


def _converted_items(hints: tuple[Any, ...], values: Sequence[Any], where: str) -> tuple[Any, ...]:
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = hints[:1] * len(values)
    if len(values) != len(hints):
        raise BadInputError(f"{where}: expected {len(hints)} values, got {len(values)}")
    pairs = zip(hints, values, strict=True)
    return tuple(_convert(hint, v, f"{where}[{i}]") for i, (hint, v) in enumerate(pairs))
