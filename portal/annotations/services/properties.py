"""Property types of a lab, and validation of an ROI's properties against them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction

from portal.annotations.models import LabelSet
from portal.annotations.properties import (
    PropertyType,
    properties_require,
    types_clean,
    types_etag,
    types_of,
)
from portal.annotations.rules import require_manage_labels
from portal.annotations.selectors.labels import property_types_of
from portal.annotations.services.labels import label_set_ensure
from portal.core.errors import ConflictError, NotFoundError
from portal.core.events import event_emit
from portal.labs.models import Lab, User

Types = list[PropertyType]


@dataclass(frozen=True, slots=True)
class PropertyForm:
    """Editable fields of a property type; see ``PropertyType``."""

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    unit: str = ""


def property_types_set(
    *, lab: Lab, user: User, types: object, etag: str | None = None
) -> list[PropertyType]:
    """Say which properties the lab's ROIs have, and of what type. What ROIs have stays.

    Emits ``properties.changed`` where something differs.

    Args:
        etag: ``types_etag`` of the types that were read; None skips the check.
    Raises:
        ForbiddenError: not a manager. InvalidInputError.
        ConflictError: somebody changed them since.
    """
    return _change_types(lab, user, etag, lambda _: types)


def property_type_add(*, lab: Lab, user: User, etag: str, data: PropertyForm) -> Types:
    """Append a property type. Raises as ``property_types_set``."""
    new_type = PropertyType(data.name, data.kind, data.choices, data.unit)
    return _change_types(
        lab,
        user,
        etag,
        lambda types: [asdict(property_type) for property_type in (*types, new_type)],
    )


def property_type_update(*, lab: Lab, user: User, etag: str, key: str, data: PropertyForm) -> Types:
    """Change name, kind, unit or choices; ROIs keep their values, under the same key."""
    fields = asdict(data)
    return _replace_type(
        lab, user, etag, key, lambda property_type: replace(property_type, **fields)
    )


def property_type_retire(
    *, lab: Lab, user: User, etag: str, key: str, is_retired: bool = True
) -> Types:
    """Retire a property, or restore it."""
    return _replace_type(
        lab, user, etag, key, lambda property_type: replace(property_type, retired=is_retired)
    )


def property_type_move(*, lab: Lab, user: User, etag: str, key: str, by: int) -> Types:
    """Move a property type up (-1) or down (1) among the active ones, within the list's ends."""

    def moved(types: Types) -> object:
        active = [property_type for property_type in types if not property_type.retired]
        at = active.index(_type_by_key(active, key))
        active.insert(max(at + by, 0), active.pop(at))
        return [
            asdict(property_type)
            for property_type in (
                *active,
                *(property_type for property_type in types if property_type.retired),
            )
        ]

    return _change_types(lab, user, etag, moved)


def _replace_type(
    lab: Lab,
    user: User,
    etag: str,
    key: str,
    other: Callable[[PropertyType], PropertyType],
) -> Types:
    def change(types: Types) -> object:
        replaced = _type_by_key(types, key)
        return [
            asdict(other(property_type) if property_type is replaced else property_type)
            for property_type in types
        ]

    return _change_types(lab, user, etag, change)


def _type_by_key(types: Types, key: str) -> PropertyType:
    property_type = next((candidate for candidate in types if candidate.key == key), None)
    if property_type is None:
        raise NotFoundError("There is no such property.")
    return property_type


def _change_types(
    lab: Lab, user: User, etag: str | None, change: Callable[[Types], object]
) -> Types:
    require_manage_labels(user, lab.pk)
    label_set_ensure(lab=lab)
    with transaction.atomic():
        rows = LabelSet.objects.select_for_update().filter(lab=lab)
        label_set = rows.order_by("-is_default", "created_at")[0]
        before = types_of(label_set.property_types)
        if etag is not None and etag != types_etag(before):
            raise ConflictError(
                (
                    "Somebody else has changed the properties in the meantime. Look at them and "
                    "try again."
                ),
                code="properties-changed",
            )
        label_set.property_types = types_clean(change(before))
        label_set.save(update_fields=["property_types", "updated_at"])
        after = types_of(label_set.property_types)
        if after != before:
            payload = {"lab_id": str(lab.pk), "user_id": str(user.pk)}
            keys = [property_type.key for property_type in after if not property_type.retired]
            event_emit("properties.changed", lab_id=lab.pk, payload=payload | {"keys": keys})
    return after


def properties_given(lab_id: uuid.UUID, *payloads: Mapping[str, Any]) -> Any:
    """The ``properties`` of the first of these requests; all are checked against the lab's types.

    Raises:
        InvalidInputError: a value is not of its type.
    """
    values = [payload["properties"] for payload in payloads if "properties" in payload]
    if values:
        types = property_types_of(lab_id)
        for properties in values:
            properties_require(properties, types)
    return values[0] if values else None
