"""A lab's labels: created on first need, maintained by managers, never deleted while in use."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Sequence
from typing import TypedDict

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from portal.annotations.colors import color_suggest
from portal.annotations.formats.types import is_no_label
from portal.annotations.models import Label, LabelSet, LabelSetVersion, Roi, RoiRevision
from portal.annotations.rules import require_manage_labels
from portal.annotations.selectors.labels import labels_frozen
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.core.text import name_clean, name_key
from portal.labs.models import Lab, User

DEFAULT_SET = "Default"
# Distinct for every kind of colour vision, and visible on a dark page (annotations.colors).
STARTER_LABELS = (
    ("Tumor", "#d40000"),
    ("Normal", "#84b997"),
    ("Stroma", "#098b7b"),
    ("Immune cells", "#a800f0"),
    ("Necrosis", "#a8d8f0"),
    ("Polyp", "#d8ce4b"),
    ("Vessel", "#f060f0"),
    ("Artifact", "#aa9246"),
)
KEYS = tuple("123456789")
MAX_DEPTH = 4  # levels of the tree; deeper ones fit into no list
NAME_MAX = 80  # as the column
_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")


def label_set_ensure(*, lab: Lab) -> LabelSet:
    """The lab's default label set, made with a few starter labels where there is none yet."""
    existing: LabelSet | None = (
        LabelSet.objects.filter(lab=lab).order_by("-is_default", "created_at").first()
    )
    if existing is not None:
        return existing
    with transaction.atomic():
        label_set, created = LabelSet.objects.get_or_create(
            lab=lab, name=DEFAULT_SET, defaults={"is_default": True}
        )
        if created:
            Label.objects.bulk_create(
                Label(
                    lab=lab,
                    label_set=label_set,
                    name=name,
                    color=color,
                    position=position,
                    key=KEYS[position],
                )
                for position, (name, color) in enumerate(STARTER_LABELS)
            )
    return label_set


def color_next(*, lab: Lab) -> str:
    """A colour for the lab's next label, far from those it has for every kind of colour vision."""
    return color_suggest(
        list(Label.objects.filter(lab=lab, retired_at=None).values_list("color", flat=True))
    )


def label_create(
    *,
    lab: Lab,
    user: User,
    name: str,
    color: str | None = None,
    position: int | None = None,
    parent: Label | None = None,
) -> Label:
    """Add a label at the end (or at ``position``) of the lab's default set.

    It gets the first of the viewer's keys 1 to 9 that is free. Emits ``label.saved``.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: the lab has a label of that name (upper and lower case are the same).
        InvalidInputError: a bad name or colour; the parent is another lab's, or too deep.
    """
    require_manage_labels(user, lab.pk)
    label_set = label_set_ensure(lab=lab)
    if position is None:
        last = label_set.labels.aggregate(last=Max("position"))["last"]
        position = 0 if last is None else last + 1
    used_keys = set(label_set.labels.filter(retired_at=None).values_list("key", flat=True))
    label = Label(
        lab=lab,
        label_set=label_set,
        name=_clean_name(name),
        color=_clean_color(color or color_next(lab=lab)),
        position=position,
        key=next((key for key in KEYS if key not in used_keys), ""),
        parent=parent,
    )
    label_parent_check(label)
    return _save(label, action="created")


class LabelChanges(TypedDict, total=False):
    """Editable fields of ``label_update``; omitted ones keep their values."""

    name: str
    color: str
    position: int
    parent: Label | None
    key: str
    retired: bool


def label_update(*, label: Label, user: User, changes: LabelChanges) -> Label:
    """Rename, recolour, move, retire or restore a label. ROIs keep pointing at it, and their
    revisions keep the name they were given.

    A key is taken from the label that has it. Emits ``label.saved``.

    Raises:
        As ``label_create``.
        ConflictError: a retired one's name was given to another since.
    """
    require_manage_labels(user, label.lab_id)
    if "name" in changes:
        label.name = _clean_name(changes["name"])
    if "color" in changes:
        label.color = _clean_color(changes["color"])
    label.position = changes.get("position", label.position)
    if "parent" in changes:
        label.parent = changes["parent"]
        label_parent_check(label)
    if changes.get("key", "") not in ("", *KEYS):
        raise InvalidInputError("key: one of 1 to 9, or nothing.")
    fields = {*(changes.keys() - {"retired"}), "updated_at"}
    with transaction.atomic():
        if "key" in changes:
            label.key = changes["key"]
            label.label_set.labels.filter(key=label.key).exclude(key="").update(key="")
        if "retired" in changes and changes["retired"] != (label.retired_at is not None):
            label.retired_at = timezone.now() if changes["retired"] else None
            label.key = ""
            label.merged_into = None
            fields |= {"retired_at", "key", "merged_into"}
        return _save(label, action="changed", fields=fields)


def labels_order(
    *, lab: Lab, user: User, order: Sequence[tuple[uuid.UUID, uuid.UUID | None]]
) -> list[Label]:
    """Set the order and the hierarchy of a lab's labels; emits one ``label.saved``.

    Args:
        order: Id and parent of each label that is not retired, first to last.

    Raises:
        InvalidInputError: a label is missing, duplicated, nested too deep or below itself.
    """
    require_manage_labels(user, lab.pk)
    label_set = label_set_ensure(lab=lab)
    with transaction.atomic():
        labels = {label_row.pk: label_row for label_row in label_set.labels.select_for_update()}
        active_ids = {pk for pk, label_row in labels.items() if label_row.retired_at is None}
        if len(order) != len(active_ids) or {label_row for label_row, _ in order} != active_ids:
            raise InvalidInputError(
                "labels: the labels of the lab have changed. Reload the page and order them again."
            )
        if {parent for _, parent in order} - active_ids - {None}:
            raise InvalidInputError("parent: no such label in this lab.", code="unknown-label")
        for position, (label_row, parent) in enumerate(order):
            labels[label_row].position, labels[label_row].parent = (
                position,
                labels[parent] if parent else None,
            )
        ordered = [labels[label_row] for label_row, _ in order]
        for label in ordered:
            label_parent_check(label)
        Label.objects.bulk_update(ordered, ["position", "parent"])
        payload = {"label_id": str(ordered[0].pk), "action": "ordered"} if ordered else {}
        event_emit("label.saved", lab_id=lab.pk, payload=payload)
    return ordered


def label_set_publish(*, lab: Lab, user: User, note: str = "") -> LabelSetVersion:
    """Freeze the labels as they are; ROIs changed from now on name this version.

    Raises:
        ConflictError: nothing changed since the last version. ForbiddenError.
    """
    require_manage_labels(user, lab.pk)
    label_set = label_set_ensure(lab=lab)
    with transaction.atomic():
        LabelSet.objects.select_for_update().get(pk=label_set.pk)
        labels = labels_frozen(label_set)
        last = label_set.versions.order_by("-number").first()
        if last is not None and last.labels == labels:
            raise ConflictError(
                f"Nothing changed since version {last.number}.", code="version-unchanged"
            )
        version: LabelSetVersion = LabelSetVersion.objects.create(
            lab=lab,
            label_set=label_set,
            number=last.number + 1 if last else 1,
            labels=labels,
            note=name_clean(note)[:200],
            published_by=user,
        )
        payload = {"label_version_id": str(version.pk), "number": version.number}
        event_emit("label_version.published", lab_id=lab.pk, payload=payload)
    return version


def label_delete(*, label: Label, user: User) -> None:
    """Delete a label that nothing ever used; emits ``label.deleted``.

    Raises:
        ConflictError: an ROI (``details["in_use"]``) or its history has it, or labels are below it.
    """
    require_manage_labels(user, label.lab_id)
    with transaction.atomic():
        in_use = Roi.all_objects.filter(label=label).count()
        if in_use or RoiRevision.objects.filter(label=label).exists():
            regions = "1 region has it" if in_use == 1 else f"{in_use:,} regions have it"
            where = regions if in_use else "the history of regions refers to it"
            raise ConflictError(
                f'"{label.name}" cannot be deleted: {where}. Rename or retire it instead.',
                code="label-in-use",
                details={"in_use": in_use},
            )
        payload = {"label_id": str(label.pk), "name": label.name, "action": "deleted"}
        if label.children.exists():
            raise ConflictError(
                f'The label "{label.name}" has labels below it. Move them first.',
                code="label-in-use",
            )
        label.delete()
        event_emit("label.deleted", lab_id=label.lab_id, payload=payload)


def label_name_refuse(name: str) -> None:
    """Raise ``InvalidInputError`` for what cannot be a label's name."""
    _clean_name(name)


def label_parent_check(label: Label) -> None:
    """Raise ``InvalidInputError`` for a parent elsewhere, below itself, or too deep."""
    lineage: list[uuid.UUID] = [label.pk]
    above = label.parent
    while above is not None:
        if above.lab_id != label.lab_id:
            raise InvalidInputError("parent: no such label in this lab.", code="unknown-label")
        if above.pk in lineage:
            raise InvalidInputError("parent: a label cannot be below itself.")
        lineage.append(above.pk)
        if len(lineage) > MAX_DEPTH:
            raise InvalidInputError(f"parent: labels can be at most {MAX_DEPTH} levels deep.")
        above = above.parent


def _save(label: Label, *, action: str, fields: Collection[str] | None = None) -> Label:
    """Save all columns of a new label, else only ``fields``: concurrent changes are preserved."""
    with transaction.atomic():
        other_labels = label.label_set.labels.exclude(pk=label.pk).filter(retired_at=None)
        twins = other_labels.filter(name_key=name_key(label.name))
        if label.retired_at is None and twins.exists():
            raise _name_taken_error(label)
        columns = None if fields is None else {*fields, "name_key"}
        try:
            with transaction.atomic():
                label.save(update_fields=columns, force_insert=fields is None)
        except IntegrityError:
            raise _name_taken_error(label) from None
        payload = {"label_id": str(label.pk), "name": label.name, "action": action}
        event_emit("label.saved", lab_id=label.lab_id, payload=payload)
    return label


def _name_taken_error(label: Label) -> ConflictError:
    return ConflictError(f'The lab already has a label "{label.name}".', code="label-exists")


def _clean_name(name: str) -> str:
    name = name_clean(name)
    if not name or len(name) > NAME_MAX:
        raise InvalidInputError(f"name: 1 to {NAME_MAX} characters that can be seen.")
    if is_no_label(name):  # a file could not tell its regions from those without a label
        raise InvalidInputError(
            f'name: "{name}" is what files call regions without a label. Choose another name.'
        )
    return name


def _clean_color(color: str) -> str:
    if not _COLOR.match(color):
        raise InvalidInputError(f"color: {color!r:.40} is not of the form #rrggbb.")
    return color.lower()
