"""Description and properties (texts by key) of ROIs.

A lab can define properties and the type of their values (``PropertyType``); all others are free
text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from ml.types import JsonObject
from portal.core.errors import InvalidInputError
from portal.core.text import name_clean, name_key, text_clean

MAX_DESCRIPTION_CHARS = 10_000  # five pages: a report, not a file
MAX_PROPERTIES, MAX_KEY_CHARS, MAX_PROPERTY_CHARS = 50, 80, 1_000
MAX_TYPES, MAX_CHOICES, MAX_UNIT_CHARS = 50, 50, 20
KINDS = ("text", "number", "choice", "yes-no")
YES_NO = ("yes", "no")
DESCRIPTION_KEY = "ANNOTATION_DESCRIPTION"
"""Metadata key under which QuPath stores an annotation's description."""
_RESERVED = "tessera."  # of what the portal itself writes into a file


@dataclass(frozen=True, slots=True)
class PropertyType:
    """A property defined by a lab.

    Attributes:
        key: Key in ROIs and files; it never changes.
        kind: One of ``KINDS``.
        choices: Values of a ``choice``, in their order.
        unit: Unit of a ``number``.
        name: Displayed name; empty: the key.
        retired: ROIs keep their values; it is not offered for new ones, and no value is checked.
    """

    key: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    unit: str = ""
    name: str = ""
    retired: bool = False

    @property
    def title(self) -> str:
        """Displayed name."""
        return self.name or self.key

    def problem(self, value: str) -> str:
        """Expected type in words if a value is not of it, else empty."""
        if self.kind == "number":
            return "" if _is_number(value) else "a number"
        options = {"choice": self.choices, "yes-no": YES_NO}.get(self.kind)
        return "" if options is None or value in options else f"one of {', '.join(options)}"


class StoredPropertyType(TypedDict):
    """A ``PropertyType`` as a lab's row holds it."""

    key: str
    kind: str
    choices: list[str]
    unit: str
    name: str
    retired: bool


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def description_clean(text: str) -> str:
    """Description without NUL and surrounding space. ``InvalidInputError`` if it is too long."""
    text = text_clean(text)
    if len(text) > MAX_DESCRIPTION_CHARS:
        raise InvalidInputError(
            f"description: {len(text):,} characters; {MAX_DESCRIPTION_CHARS:,} at most."
        )
    return text


def properties_clean(raw: object) -> dict[str, str]:
    """Properties in the order of keys; an empty value removes a property.

    Raises:
        InvalidInputError: names the property.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInputError("properties: an object of texts by key.")
    clean: dict[str, str] = {}
    for key, value in raw.items():
        name = name_clean(str(key))
        if not name or len(name) > MAX_KEY_CHARS:
            raise InvalidInputError(f"properties: a key has 1 to {MAX_KEY_CHARS} characters.")
        if name.lower().startswith(_RESERVED):
            raise InvalidInputError(f'properties: keys that begin with "{_RESERVED}" are reserved.')
        if not isinstance(value, str):
            raise InvalidInputError(f"properties: {name} is not text.")
        text = text_clean(value)
        if len(text) > MAX_PROPERTY_CHARS:
            raise InvalidInputError(
                f"properties: {name} is longer than {MAX_PROPERTY_CHARS:,} characters."
            )
        if text:
            clean[name] = text
    if len(clean) > MAX_PROPERTIES:
        raise InvalidInputError(f"properties: {len(clean)}; {MAX_PROPERTIES} at most.")
    return dict(sorted(clean.items()))


def metadata_read(metadata: object) -> tuple[str, dict[str, str], JsonObject]:
    """Split QuPath's metadata into description, properties and other values."""
    description = ""
    properties: dict[str, str] = {}
    carried: JsonObject = {}
    for key, value in metadata.items() if isinstance(metadata, Mapping) else ():
        try:
            if key == DESCRIPTION_KEY:
                description = description_clean(str(value))
            else:
                properties = properties_clean({**properties, key: value})
        except InvalidInputError:
            carried[key] = value
    return description, properties, carried


def properties_require(properties: Mapping[str, str], types: Sequence[PropertyType]) -> None:
    """Raise ``InvalidInputError`` where a value is not of the type that the lab gave its key."""
    by_key = {
        name_key(property_type.key): property_type
        for property_type in types
        if not property_type.retired
    }
    for key, value in properties.items():
        stored_type = by_key.get(name_key(key))
        if stored_type and value and (expected := stored_type.problem(value.strip())):
            raise InvalidInputError(
                f"properties: {key} is {expected}, not {value[:40]!r}.", code="property-type"
            )


def types_clean(raw: object) -> list[StoredPropertyType]:
    """Validated property types in their stored form. ``InvalidInputError`` names the invalid
    value."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) > MAX_TYPES:
        raise InvalidInputError(f"properties: a list of {MAX_TYPES} at most.")
    by_name: dict[str, PropertyType] = {}
    for entry in raw:
        property_type = _type_clean(entry)
        for word in {name_key(property_type.key), name_key(property_type.title)}:
            if word in by_name:
                raise InvalidInputError(f"properties: {property_type.title} is listed twice.")
            by_name[word] = property_type
    return [
        {
            "key": entry.key,
            "kind": entry.kind,
            "choices": list(entry.choices),
            "unit": entry.unit,
            "name": entry.name,
            "retired": entry.retired,
        }
        for entry in dict.fromkeys(by_name.values())
    ]


def _type_clean(raw: Mapping[str, Any]) -> PropertyType:
    key, name = (name_clean(str(raw.get(field_name) or "")) for field_name in ("key", "name"))
    kind, choices = raw.get("kind", "text"), raw.get("choices") or ()
    unit = name_clean(str(raw.get("unit") or ""))
    for word in (key, name or key):
        if not word or len(word) > MAX_KEY_CHARS:
            raise InvalidInputError(f"properties: a key has 1 to {MAX_KEY_CHARS} characters.")
    if key.lower().startswith(_RESERVED):
        raise InvalidInputError(f'properties: keys that begin with "{_RESERVED}" are reserved.')
    if kind not in KINDS:
        raise InvalidInputError(f"properties: {key}: kind is one of {', '.join(KINDS)}.")
    texts = tuple(dict.fromkeys(text for c in choices if (text := text_clean(str(c)))))
    if kind == "choice" and not 0 < len(texts) <= MAX_CHOICES:
        raise InvalidInputError(f"properties: {key}: 1 to {MAX_CHOICES} choices.")
    if any(len(text) > MAX_PROPERTY_CHARS for text in texts):
        raise InvalidInputError(
            f"properties: {key}: a choice is longer than {MAX_PROPERTY_CHARS:,}."
        )
    if len(unit) > MAX_UNIT_CHARS:
        raise InvalidInputError(
            f"properties: {key}: a unit has {MAX_UNIT_CHARS} characters at most."
        )
    return PropertyType(
        key,
        kind,
        texts if kind == "choice" else (),
        unit=unit if kind == "number" else "",
        name="" if name == key else name,
        retired=bool(raw.get("retired", False)),
    )


def types_of(stored: Sequence[Mapping[str, Any]]) -> list[PropertyType]:
    """Property types from their stored form; the inverse of ``types_clean``."""
    return [PropertyType(**{**entry, "choices": tuple(entry["choices"])}) for entry in stored]


def types_etag(types: Sequence[PropertyType]) -> str:
    """ETag of the property types, which detects concurrent changes."""
    text = json.dumps([asdict(property_type) for property_type in types], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
